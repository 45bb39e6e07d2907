"""Search for the plan that leaves the most free memory; among equal ones, for the plan of least time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from formulations.partition.most_free import MostFreeModel
from pipesched.layers.free_memory import reserving, shares
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Leaves, PlanProblem
from pipesched.problem.rescale import finer
from pipesched.results.free_memory import MostFree, free_memory
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.solution import Status
from pipesched.schedule.timeline import Timeline
from solver.backends.cp_sat import solve_model
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.planning.budget import Budget
from solver.planning.progress import Report
from solver.planning.time_shares import TimeShares

Search = Callable[[Sequence[PlanCandidate], PlanProblem, Limits, Report, Event], Plan]


@dataclass(frozen=True)
@tunable
class MostFreeParams:
    """Share of a plan search's time that finds the most free memory, before the search for the least time."""

    share: float = tuned(0.3, "of the time limit at most, for the amount; the remainder for the least time", 0.01, 1)


_PARAMS = MostFreeParams()


def plan_leaving_most(search: Search, problem: PlanProblem, limits: Limits, report: Report, stop: Event) -> Plan:
    """Return the plan with the most free memory; among several such plans, the best that `search` finds by time.

    `search(starts, problem, limits, report, stop)` returns the best plan by time alone, starting from the plans
    `starts`. The value is the plan's time, the bound that of all plans that leave as much memory. If no partition fits
    the memory, or none is found in time, the answer is the result of a search by time alone.
    """
    time = TimeShares(limits)
    found = most_free(problem, time.part(_PARAMS.share, 1), stop)
    if found is None:
        return replace(search([], replace(problem, leaves=None), time.part(1, 1), report, stop), problem=problem)
    plan = search([], reserving(problem, found.value), time.part(1, 1), report, stop)
    choices = tuple(
        one if one.best is None else replace(one, best=_in_own_problem(problem, one.best)) for one in plan.choices
    )
    best = next((one.best for one, old in zip(choices, plan.choices, strict=True) if old.best is plan.best), None)
    if best is not None:
        found = replace(found, value=max(found.value, _left(problem, best)))
    status = plan.status
    if status is Status.OPTIMAL and not found.proved:
        status = Status.FEASIBLE
    return replace(plan, problem=problem, choices=choices, best=best, status=status, free=found)


def most_free(problem: PlanProblem, limits: Limits, stop: Event) -> MostFree | None:
    """Return the most free memory that a partition of any placement was found to leave, with an upper bound.

    None if none was found to fit.
    """
    budget = Budget(limits, stop)
    known: Fraction | None = None
    bounds = list[Fraction]()
    for choice in problem.choices:
        if len(choice.on(problem.cluster.devices).chains[0]) > problem.model.most_stages:
            continue
        value, bound = _of_choice(problem, choice, known, budget)
        known = value if known is None else max(known, value or known)
        bounds += [] if bound is None else [bound]
    return None if known is None else MostFree(known, max([known, *bounds]), problem.leaves is Leaves.PER_LAYER)


def _of_choice(
    problem: PlanProblem, choice: Choice, known: Fraction | None, budget: Budget
) -> tuple[Fraction | None, Fraction | None]:
    """Return (amount, bound) of a placement: the most free memory known, and the amount that no partition exceeds.

    Both are in the file's unit. The first may be `known`, of another placement, and is None where none is known; the
    second is None where no partition fits the memory.
    """
    value = known
    while True:
        model = MostFreeModel(problem, choice, value or Fraction(0))
        parameters = budget.parameters(budget.left)
        answer = solve_model(model.partitions.cp, parameters, budget.stop)
        budget.give_back(parameters, answer.work)
        if answer.infeasible:
            return value, None
        bound = (value or Fraction(0)) + max(0, -answer.bound) * model.unit
        if value is not None and answer.bound >= 0:
            return value, value
        found = _at_least(problem, choice, model.partitions.partition(answer.value_of)) if answer.has_solution else None
        if found is None or (value is not None and found <= value):
            return value, bound
        value = found
        if budget.over():
            return value, max(value, bound)


def _at_least(problem: PlanProblem, choice: Choice, partition: Partition) -> Fraction | None:
    """Return the least free memory of a device under a partition, with one micro-batch at a time, in the file's unit.

    If the objective is free memory per layer, it is divided by a device's layers with keys and values. None if the
    partition does not fit the memory.
    """
    own = problem.problem(choice, partition)
    memory_in_flight, found = own.network.memory_in_flight, list[Fraction]()
    for device, share in enumerate(shares(problem, choice, partition)):
        room, on = own.room[device], set(own.placement.stages_of[device])
        assert room is not None
        left = room - max(sum(memory_in_flight[s] for s in chain if s in on) for chain in own.placement.chains)
        if left < 0:
            return None
        found += [left * own.resolution / share] if share else []
    return min(found)


def _in_own_problem(plan: PlanProblem, found: PlanCandidate) -> PlanCandidate:
    """Return a plan of a problem with part of the memory as the same plan of `plan`, which has all of it."""
    own, timeline = plan.problem(found.choice, found.partition), found.timeline
    parts = own.tick / timeline.problem.tick
    return replace(found, timeline=Timeline(finer(own, int(parts)), timeline.schedule, timeline.starts))


def _left(plan: PlanProblem, best: PlanCandidate) -> Fraction:
    """Return the least free memory that a plan leaves on a device, in the file's unit.

    If the objective is free memory per layer, that of each device is divided by its layers with keys and values.
    """
    return free_memory(plan, best.choice, best.partition, best.timeline)
