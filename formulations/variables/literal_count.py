"""Number of order literals of an exact model: one for every two operations of a resource without a known order."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.known_order import KnownOrder
from formulations.variables.operations import Operations
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import BW
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId

# With more jobs than this every pair counts: known orders take long to find, and there are too many literals anyway.
_MOST_JOBS = 6_000


def literal_count(problem: Problem, devices: Collection[DeviceId] | None = None) -> int:
    """Return the number of order literals that an exact model needs on these devices (all if None).

    It decides if such a model is built. With more than 6000 jobs every pair counts, without the orders known
    beforehand; with fewer, unequal micro-batches raise ValueError.
    """
    return _count(problem, None if devices is None else frozenset(devices))


@lru_cache(maxsize=32)
def _count(problem: Problem, devices: frozenset[DeviceId] | None) -> int:
    network, where = problem.network, problem.placement.stage_device
    jobs = [0] * problem.devices
    for (kind, stage), tasks in network.tasks.items():
        if not (kind is BW and fused_is_dominated(problem, stage)):
            jobs[where[stage]] += len(tasks) * len(network.numbers[kind, stage])
    if sum(jobs) > _MOST_JOBS:
        return sum(n * (n - 1) // 2 for d, n in enumerate(jobs) if devices is None or d in devices)
    return KnownOrder(Operations(jobs_of(problem)), devices=devices).open_pairs(devices)
