"""Argument: a schedule that fits less memory also fits more, so bounds for more memory hold for less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import floor

from pipesched.checking.finding import RefusedEvidenceError
from pipesched.layers.cluster import Capacities, Cluster
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.features.device_resources import Pool
from pipesched.problem.problem import Problem
from pipesched.results.evidence import MoreMemory


def with_more_memory(plan: PlanProblem, capacities: Capacities) -> PlanProblem:
    """Return the plan problem with these capacities by device, rounded down to its resolution; None is unlimited.

    `RefusedEvidenceError` if there is not a capacity for each device, if some device would have less memory than
    before, if only some devices are limited, or if devices of equal memory whose order is open have unequal capacities.
    """
    own = plan.cluster.capacity or (None,) * plan.cluster.devices
    if len(capacities) != len(own):
        raise RefusedEvidenceError("not as many capacities as devices")
    for device, (most, less) in enumerate(zip(capacities, own, strict=True)):
        if most is not None and (less is None or most < less):
            raise RefusedEvidenceError(f"it was proved with less memory on device {device}")
    step = plan.resolution
    limits = tuple(floor(one / step) * step for one in capacities if one is not None)
    if limits and len(limits) < len(capacities):
        raise RefusedEvidenceError("capacities of some devices alone")
    more = dict(zip(own, limits, strict=bool(limits)))
    if plan.clusters and any(more[less] != most for less, most in zip(own, limits, strict=bool(limits))):
        raise RefusedEvidenceError("devices of equal memory have unequal capacities, and their order is open")
    return _of_memory(plan, replace(plan.cluster, capacity=limits or None), more)


def _of_memory(plan: PlanProblem, cluster: Cluster, more: Mapping[Fraction | None, Fraction]) -> PlanProblem:
    """Return the plan problem on `cluster`, with each memory m of its clusters and parts replaced by `more[m]`.

    Unlimited if `more` is empty.
    """
    orders = tuple((name, _with_capacity(one, more)) for name, one in plan.clusters)
    parts = tuple(_of_memory(one, _with_capacity(one.cluster, more), more) for one in plan.parts)
    return replace(plan, cluster=cluster, clusters=orders, parts=parts)


def _with_capacity(cluster: Cluster, more: Mapping[Fraction | None, Fraction]) -> Cluster:
    """Return the cluster with each device's memory m replaced by `more[m]`; unlimited if `more` is empty."""
    return replace(cluster, capacity=tuple(more[less] for less in cluster.capacity or ()) if more else None)


def with_capacities(problem: Problem, relaxation: MoreMemory) -> Problem:
    """Return the problem with the memory that evidence names.

    `RefusedEvidenceError` if there is not a capacity for each device, or some device has less there.

    Capacities are in the file's unit, None for unlimited. Amounts of memory are whole in the problem's resolution, so
    that a capacity between two of them counts as the lower one.
    """
    if len(relaxation.capacities) != problem.devices:
        raise RefusedEvidenceError("not as many capacities as devices")
    pools = list[Pool]()
    for device, (pool, capacity) in enumerate(zip(problem.pools, relaxation.capacities, strict=True)):
        whole = None if capacity is None else floor(capacity / problem.resolution)
        if whole is not None and (pool.capacity is None or whole < pool.capacity):
            raise RefusedEvidenceError(f"it was proved with less memory on device {device}")
        pools.append(Pool(whole, pool.static))
    return replace(problem, pools=tuple(pools))
