"""The problem without what stages run for their parameters: the passes of micro-batches alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipesched.problem.problem import Objective, Problem


def without_parameters(problem: Problem, held: Callable[[Iterable[int]], int] = min) -> Problem:
    """The same in makespan, in span where iterations overlap; the problem itself where it has no such passes.

    Leaving these passes out of a schedule gives one of this problem that ends no later. Whenever a pass takes memory,
    the parameters of its stage are there: of a device's stages the `held` ones are taken from the memory, where only
    passes that compute take any.
    """
    if all(one is None for stage in problem.stages for one in (stage.gather, stage.reduce, stage.step)):
        return problem
    stages = tuple(replace(stage, reduce=None, step=None, gather=None, buckets=1) for stage in problem.stages)
    room = [
        own if own is None else own - gathered_memory(problem, device, held) for device, own in enumerate(problem.room)
    ]
    found = problem if room == list(problem.room) else problem.with_room(room)
    return replace(
        found,
        stages=stages,
        holders=(),
        most_gathers=None,
        gather_window=None,
        objective=Objective.MAKESPAN if problem.objective is Objective.ITERATION else problem.objective,
    )


def gathered_memory(problem: Problem, device: int, held: Callable[[Iterable[int]], int] = min) -> int:
    """What gathered parameters hold on a device whenever a pass of one of its stages takes memory."""
    holders = problem.holders or range(len(problem.stages))
    stages = [s for s in problem.placement.stages_of[device] if problem.microbatches_of[s]]
    if not stages or any(problem.stages[s].offload for s in stages):
        return 0
    gathers = {holders[s]: problem.stages[holders[s]].gather for s in stages}
    return held([0 if one is None else one.memory for one in gathers.values()])
