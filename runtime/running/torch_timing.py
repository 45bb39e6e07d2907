"""Predicted times under the rules of PyTorch's runtime, which the plan does not know, as another problem."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate

SPLITS = ("autograd", "store")


def as_run(problem: Problem, split: str, transfers: bool = True) -> Problem:
    """The same problem with the times that hold when PyTorch runs it.

    With autograd's split, B of a chain's first stage does nothing, since no input asks for a gradient, and its W is the
    whole backward. The two passes of an overlapped slot run in turn. `transfers=False` leaves transfers out, as where
    a model only sleeps and sends next to nothing.
    """
    costs = replace(problem.costs, overlapped=None)
    if not transfers:
        costs = replace(costs, transfer=(0,) * problem.placement.stages)
    if split == "autograd" and costs.weight is not None:
        backward, weight = list(costs.backward), list(costs.weight)
        for chain in problem.placement.chains:
            weight[chain[0]] += backward[chain[0]]
            backward[chain[0]] = 0
        costs = replace(costs, backward=tuple(backward), weight=tuple(weight))
    return replace(problem, costs=costs)


def predicted(problem: Problem, schedule: Schedule, split: str, transfers: bool = True) -> Timeline:
    """The timeline to hold a run against: the schedule's order, as soon as possible, under `as_run`'s times."""
    return simulate(as_run(problem, split, transfers), schedule)


def sleeping_seconds(problem: Problem, stage: int, seconds_per_tick: float) -> dict[str, float]:
    """How long a sleeping stage sleeps in each kind of pass, as the plan says; the runtime does the rest."""
    costs = problem.costs
    ticks = {"F": costs.forward[stage], "BW": costs.fused[stage], "B": costs.backward[stage], "W": 0}
    if costs.weight is not None:
        ticks["W"] = costs.weight[stage]
    return {kind: seconds_per_tick * count for kind, count in ticks.items()}


def inputs_from_elsewhere(problem: Problem, schedule: Schedule, p: Pass) -> list[tuple[Pass, int]]:
    """The passes on other devices whose tensors p waits for, with their devices."""
    here = problem.device(p)
    needs = [need.before for need in problem.needs(p, schedule.is_fused)]
    return [(before, problem.device(before)) for before in needs if problem.device(before) != here]
