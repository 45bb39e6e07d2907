"""The passes of micro-batches alone: a problem without what its stages run for their parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipesched.problem.features.parameters import OWN_PARAMETERS
from pipesched.problem.problem import Problem


def passes_alone(problem: Problem, room_for: Callable[[Iterable[int]], int] = max) -> Problem:
    """The same in makespan, in span where iterations overlap; the problem itself where it has no such passes.

    Whenever a pass takes memory, the parameters of its stage are gathered. `room_for` says of which stage of a device
    the parameters are taken from its memory: with `max`, for searches, an order that fits here fits with whichever
    parameters are there; with `min` it is a relaxation (`pipesched.problem.relaxed`).
    """
    if not has_parameters(problem):
        return problem
    stages = tuple(replace(stage, once=(), gather=None) for stage in problem.stages)
    room = [
        own if own is None else own - _gathered(problem, device, room_for) for device, own in enumerate(problem.room)
    ]
    found = problem if room == list(problem.room) else problem.with_room(room)
    return replace(
        found,
        stages=stages,
        parameters=OWN_PARAMETERS,
        objective=problem.objective.of_passes,
    )


def has_parameters(problem: Problem) -> bool:
    """True if a stage gathers parameters, reduces gradients or steps."""
    return any(stage.kinds_of_parameters for stage in problem.stages)


def _gathered(problem: Problem, device: int, room_for: Callable[[Iterable[int]], int]) -> int:
    """Memory of gathered parameters on a device whenever a pass of one of its stages takes memory."""
    holder = problem.parameters.holder
    stages = [s for s in problem.placement.stages_of[device] if problem.microbatches_of[s]]
    if not stages or any(problem.stages[s].offload for s in stages):
        return 0
    gathers = {holder(s): problem.stages[holder(s)].gather for s in stages}
    return room_for([0 if one is None else one.memory for one in gathers.values()])
