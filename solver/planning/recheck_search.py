"""Recheck of the search over all partitions that a plan's bound rests on, with a second model or other parameters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from threading import Event
from typing import NamedTuple

from heuristics.catalogue import schedule_named
from pipesched.checking.plan_check import leaving_out
from pipesched.errors import DoesNotApply
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.quantities import Ticks
from pipesched.results.plan_evidence import AllOrders, AllPartitions, OrderPaths, PlanEvidence, SolvedPartition
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.cp_sat import Parameters, solve_model
from solver.limits import Limits
from solver.planning.partitions.balance import balanced
from solver.planning.partitions.by_device import ByDevice, applies
from solver.planning.partitions.critical_path import critical_path
from solver.planning.partitions.master import Master
from solver.planning.recheck_left_out import is_partition, may_be_left_out
from solver.planning.search.fixed_order import provable


def recheck_search(
    plan: PlanProblem, choice: Choice, bound: Fraction, evidence: PlanEvidence, limits: Limits, stop: Event
) -> bool | None:
    """Return True if it is proved again that no plan of the placement is below `bound`, in the file's unit.

    False if there may be such a plan. None if the time does not suffice, for evidence that is neither solved partitions
    nor orders, and for published orders that depend on costs or whose critical paths prove nothing here.
    """
    ticks = ceil(bound / plan.tick)
    if isinstance(evidence, AllPartitions):
        return _partitions_again(plan, choice, bound, leaving_out(evidence.solved, bound), limits, stop)
    if not isinstance(evidence, AllOrders):
        return None
    return _all(_order_again(plan, choice, ticks, evidence.orders, name, limits, stop) for name in plan.schedules)


def _partitions_again(
    plan: PlanProblem, choice: Choice, bound: Fraction, solved: Sequence[SolvedPartition], limits: Limits, stop: Event
) -> bool | None:
    """Return True if it is proved again that no partition has a plan below `bound`; False if one has, None if unknown.

    The proof is that by devices, or by the master problem without the partitions `solved`, each of which is first
    rechecked by itself.
    """
    ticks = ceil(bound / plan.tick)
    if applies(plan, choice) and ByDevice(plan, choice).refutes(ticks - 1):
        return True
    master, found = Master(plan, choice), list[bool | None]()
    work = None if limits.deterministic is None else limits.deterministic / (len(solved) + 1)
    each = replace(limits, seconds=limits.seconds / (len(solved) + 1), deterministic=work)
    for one in solved:
        found.append(may_be_left_out(plan, choice, bound, one, each, stop))
        if found[-1] is False:
            return False
        if is_partition(plan, one):
            master.exclude(one.partition)
    return _all([*found, _refuted(master, ticks, each, stop).proved])


def _order_again(
    plan: PlanProblem,
    choice: Choice,
    ticks: Ticks,
    known: tuple[OrderPaths, ...],
    name: str,
    limits: Limits,
    stop: Event,
) -> bool | None:
    """Return True if the published order `name` has no plan below `ticks` on the placement, or does not apply there.

    False if it has one, None if unknown. Critical paths of the evidence `known` are recomputed; further ones are added
    for each partition that the master still finds.
    """
    paths, published = next((one for one in known if one.order == name), OrderPaths(name, ())), schedule_named(name)
    if not published.same_for_all_costs or not provable(plan, choice):
        return None
    try:
        order = published.order(plan.problem(choice, balanced(plan, choice)))
    except DoesNotApply:
        return True
    master = Master.of_order(plan, choice, order)
    for partition in paths.tried:
        master.add_path(critical_path(simulate(plan.problem(choice, partition), order), plan))
    for partition in paths.unfit:
        if _unfit(plan, choice, partition, order):
            master.exclude(partition)
    return _by_paths(master, order, ticks, limits, stop)


def _by_paths(master: Master, order: Schedule, ticks: Ticks, limits: Limits, stop: Event) -> bool | None:
    """Return True if it is proved that no partition has a value below `ticks` under the order, False if one has.

    None if unknown in time. The master is changed: each partition found adds its critical path as a cut, or is
    forbidden if it does not fit.
    """
    until = time.monotonic() + limits.seconds
    while True:
        answer = _refuted(master, ticks, replace(limits, seconds=max(0.0, until - time.monotonic())), stop)
        if answer.partition is None:
            return answer.proved
        timeline = simulate(master.plan.problem(master.choice, answer.partition), order)
        if validate(timeline):
            master.exclude(answer.partition)
        elif measure(timeline).value_ticks(master.plan.objective) < ticks:
            return False
        else:
            master.add_path(critical_path(timeline, master.plan))


def _unfit(plan: PlanProblem, choice: Choice, partition: Partition, order: Schedule) -> bool:
    return bool(validate(simulate(plan.problem(choice, partition), order)))


class _Answer(NamedTuple):
    """Result of one search of the master problem.

    `proved`: True if no partition is below the threshold, False if `partition` is, None if the search did not end.
    """

    proved: bool | None
    partition: Partition | None = None


def _refuted(master: Master, ticks: Ticks, limits: Limits, stop: Event) -> _Answer:
    """Search the master problem for a partition below `ticks`, with another random seed than the first proof had.

    The master is then restricted to such partitions. Nothing is below 0 ticks.
    """
    if ticks <= 0:
        return _Answer(True)
    master.at_most(ticks - 1)
    parameters = Parameters(
        limits.seconds,
        limits.deterministic,
        limits.seed + 1,
        workers=limits.workers,
        first_solution=True,
    )
    answer = solve_model(master.model.cp, parameters, stop)
    if answer.has_solution:
        return _Answer(False, master.model.partition(answer.value_of))
    return _Answer(True if answer.infeasible else None)


def _all(found: Iterable[bool | None]) -> bool | None:
    """Return False if an entry is False, else None if one is None, else True."""
    every = list(found)
    return False if False in every else None if None in every else True
