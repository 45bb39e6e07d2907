"""Number of order literals of an exact model: one for every pair of operations of a resource with open order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.known_order import KnownOrder
from formulations.variables.operations import Operation, Operations
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import BW
from pipesched.problem.problem import Problem

# With more jobs than this every pair counts: known orders take long to find, and there are too many literals anyway.
_MOST_JOBS = 6_000


def literal_count(problem: Problem, devices: Collection[int] | None = None) -> int:
    """Return the order literals on these devices (all if None); for very large problems the number of all pairs."""
    return _count(problem, None if devices is None else frozenset(devices))


@lru_cache(maxsize=32)
def _count(problem: Problem, devices: frozenset[int] | None) -> int:
    network, where = problem.network, problem.placement.stage_device
    jobs = [0] * problem.devices
    for (kind, stage), tasks in network.tasks.items():
        if not (kind is BW and fused_is_dominated(problem, stage)):
            jobs[where[stage]] += len(tasks) * len(network.numbers[kind, stage])
    if sum(jobs) > _MOST_JOBS:
        return sum(n * (n - 1) // 2 for d, n in enumerate(jobs) if devices is None or d in devices)
    return open_pairs(KnownOrder(Operations(jobs_of(problem)), devices=devices), devices)


def open_pairs(known: KnownOrder, devices: Collection[int] | None = None) -> int:
    """Return the number of pairs of operations of one resource whose order is not known."""
    ops, found = known.operations, 0
    for where, here in ops.on.items():
        if devices is None or where.device in devices:
            bits = known.bits(here)
            known_pairs = sum((known.before[ops.number[x]] & bits).bit_count() for x in here)
            found += len(here) * (len(here) - 1) // 2 - known_pairs - _excluded(known, here)
    return found


def _excluded(known: KnownOrder, here: Sequence[Operation]) -> int:
    """Return the number of further pairs whose two operations never both run."""
    ops, by_choice = known.operations, dict[int | None, list[Operation]]()
    for x in here:
        if not ops.always(x):
            by_choice.setdefault(ops.choice(x), []).append(x)
    pairs = (pair for each in by_choice.values() for pair in combinations(each, 2) if ops.exclude(*pair))
    return sum(not (known.precedes(x, y) or known.precedes(y, x)) for x, y in pairs)
