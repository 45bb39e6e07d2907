"""The search over all partitions on which a plan's bound rests, once more: the model stated anew, other parameters."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from threading import Event

from heuristics.catalogue import schedule_named
from pipesched.checking.plan_check import leaving_out
from pipesched.errors import DoesNotApply
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.results.plan_evidence import AllOrders, AllPartitions, OrderPaths, PlanEvidence
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.cp_sat import Parameters, solve_model
from solver.limits import Limits
from solver.planning.partitions.critical_path import critical_path
from solver.planning.partitions.master import Master
from solver.planning.search.fixed_order import provable


def searched_again(
    plan: PlanProblem, choice: Choice, bound: Fraction, evidence: PlanEvidence, limits: Limits, stop: Event
) -> bool | None:
    """Whether CP-SAT again finds no partition below the bound; None where it comes to no end in time."""
    ticks = ceil(bound / plan.tick)
    if isinstance(evidence, AllPartitions):
        master = Master(plan, choice)
        for one in leaving_out(evidence.solved, bound):
            master.exclude(one.partition)
        return _refuted(master, ticks, limits, stop)
    if not isinstance(evidence, AllOrders):
        return None
    return _all(_order_again(plan, choice, ticks, evidence.orders, name, limits, stop) for name in plan.schedules)


def _order_again(
    plan: PlanProblem,
    choice: Choice,
    ticks: int,
    known: tuple[OrderPaths, ...],
    name: str,
    limits: Limits,
    stop: Event,
) -> bool | None:
    """For one published order: none is below where it does not apply."""
    paths = next((one for one in known if one.order == name), None)
    if paths is None or not paths.tried:
        return _does_not_apply(plan, choice, name, known)
    order = schedule_named(name).order(plan.problem(choice, paths.tried[0]))
    if not schedule_named(name).same_for_all_costs or not provable(plan, choice):
        return None
    master = Master(plan, choice, every_order=False)
    master.of_order(order)
    for partition in paths.tried:
        master.add_path(critical_path(simulate(plan.problem(choice, partition), order)))
    for partition in paths.unfit:
        if _unfit(plan, choice, partition, order):
            master.exclude(partition)
    return _refuted(master, ticks, limits, stop)


def _does_not_apply(plan: PlanProblem, choice: Choice, name: str, known: tuple[OrderPaths, ...]) -> bool | None:
    """Whether an order does not apply to a partition of this placement; None where there is none to ask."""
    for partition in (partition for one in known for partition in one.tried):
        try:
            schedule_named(name).order(plan.problem(choice, partition))
        except DoesNotApply:
            return True
        return False
    return None


def _unfit(plan: PlanProblem, choice: Choice, partition: Partition, order: Schedule) -> bool:
    return bool(validate(simulate(plan.problem(choice, partition), order)))


def _refuted(master: Master, ticks: int, limits: Limits, stop: Event) -> bool | None:
    """Whether the master has no partition below so many ticks; another seed, and without symmetries."""
    if ticks <= 0:
        return True
    master.at_most(ticks - 1)
    parameters = Parameters(
        limits.seconds,
        limits.deterministic,
        limits.seed + 1,
        workers=limits.workers,
        first_solution=True,
        symmetry=False,
    )
    answer = solve_model(master.model.cp, parameters, stop)
    return True if answer.infeasible else False if answer.has_solution else None


def _all(found: Iterable[bool | None]) -> bool | None:
    """False where one is, else None where one is."""
    every = list(found)
    return False if False in every else None if None in every else True
