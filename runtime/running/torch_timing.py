"""Predicted times of a run with PyTorch: the problem with the durations of PyTorch, simulated."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate

SPLITS = ("autograd", "store")


def as_run(problem: Problem, split: str, transfers: bool = True) -> Problem:
    """Return the problem with the durations that its passes have when PyTorch runs it.

    With `split` "autograd", B of a chain's first stage does nothing, since no input needs a gradient, and its W is the
    whole backward. The two passes of an overlapped slot run one after the other. `transfers=False` leaves transfers
    out, for a model that only sleeps and sends next to nothing.
    """
    stages = [*problem.without_blocks().stages]
    links = problem.links
    if not transfers:
        stages, links = [replace(stage, transfer=0) for stage in stages], ()
    for first in (chain[0] for chain in problem.placement.chains):
        own = stages[first]
        if split == "autograd" and own.weight is not None:
            stages[first] = replace(own, backward=0, weight=own.weight + own.backward)
    return replace(problem, stages=tuple(stages), links=links)


def predicted(problem: Problem, schedule: Schedule, split: str, transfers: bool = True) -> Timeline:
    """Return the timeline to compare a run of PyTorch with: the schedule's order, each pass as soon as possible.

    Durations are those of `as_run`. With `split` "autograd", B of a chain's first stage takes no time and its W the
    time of both; with "store" (gradients of weights stored for later) each takes its own. Overlapped passes run one
    after the other. `transfers=False`: transfers take no time. `Deadlock` if the order cannot run.
    """
    return simulate(as_run(problem, split, transfers), schedule)


def sleeping_seconds(problem: Problem, stage: StageId, seconds_per_tick: float) -> dict[str, float]:
    """Return the seconds that a stage of sleeping layers sleeps in each kind of pass; the keys are F, BW, B and W.

    They are the durations in the problem, in ticks of `seconds_per_tick`. The runtime adds time of its own.
    """
    own = problem.stages[stage]
    ticks = {"F": own.forward, "BW": own.fused, "B": own.backward, "W": own.weight or 0}
    return {kind: seconds_per_tick * count for kind, count in ticks.items()}


def inputs_from_elsewhere(problem: Problem, schedule: Schedule, p: Pass) -> list[tuple[Pass, DeviceId]]:
    """Return the passes on other devices whose tensors `p` waits for, each with its device."""
    here = problem.device(p)
    needed = [before for before, _ in problem.network.predecessors(p, schedule.pass_set)]
    return [(before, problem.device(before)) for before in needed if problem.device(before) != here]
