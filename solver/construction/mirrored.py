"""Mirrored schedules: two chains in opposite directions run alike at the same time, each on mirrored devices.

Where both chains of a bidirectional placement have equal stages, a schedule of one chain on half of the devices, each
with the stages that the chain has on both of a mirrored pair, determines the whole schedule: DualPipeV and DualPipe are
such a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product

from pipesched.problem.passes import Pass, Slot
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId
from pipesched.schedule.schedule import Schedule


def folded(problem: Problem) -> Problem | None:
    """Return the problem of one of two mirrored chains on half of the devices.

    None where the chains are not mirror images. None also for any other number of chains, chains that share a queue,
    and passes that are not plain. Its stage n is the n-th of the first chain, and its devices are the lower-numbered of
    each pair, in ascending order. It has the larger number of micro-batches of the two. Sending from a device to its
    mirror image takes no time in it.
    """
    chains = problem.placement.chains
    if len(chains) != 2 or problem.walks.queues or problem.view is None:
        return None
    mirror = _mirror(problem)
    if mirror is None:
        return None
    kept = [device for device in range(problem.devices) if device < mirror[device]]
    where = [problem.placement.stage_device[stage] for stage in chains[0]]
    at = tuple(kept.index(min(device, mirror[device])) for device in where)
    transfers = [problem.lag(one, other) for one, other in pairwise(chains[0])] + [0]
    stages = (
        replace(problem.stages[stage], transfer=transfer) for stage, transfer in zip(chains[0], transfers, strict=True)
    )
    return replace(
        problem,
        placement=Placement(f"half of {problem.placement.name}", len(kept), at, (tuple(range(len(at))),)),
        microbatches=max(len(problem.microbatches_of[chain[0]]) for chain in chains),
        stages=tuple(stages),
        pools=tuple(problem.pools[device] for device in kept),
        links=(),
        walks=replace(problem.walks, shares=()),
    )


def _mirror(problem: Problem) -> Sequence[DeviceId] | None:
    """Return for each device the one that has the same stages of the other chain; None if some device has none.

    Also None if the chains differ in stages, memory or transfer times.
    """
    down, up = problem.placement.chains
    where, found = problem.placement.stage_device, dict[int, int]()
    if len(down) != len(up) or not all(len(problem.microbatches_of[chain[0]]) for chain in (down, up)):
        return None
    for one, other in zip(down, up, strict=True):
        here, there = where[one], where[other]
        if problem.stages[one] != problem.stages[other] or problem.pools[here] != problem.pools[there]:
            return None
        if here == there or found.setdefault(here, there) != there or found.setdefault(there, here) != here:
            return None
    alike = (problem.lag(*one) == problem.lag(*other) for one, other in zip(pairwise(down), pairwise(up), strict=True))
    whole = len(found) == problem.devices and all(alike)
    return [found[device] for device in range(problem.devices)] if whole else None


def unfolded(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule of both chains on all devices, made of `schedule`, one of the problem that `folded` returned.

    `problem` is the one given to `folded`. Micro-batches that a chain does not have are left out.
    """
    where, mirror = problem.placement.stage_device, _mirror(problem)
    assert mirror is not None
    orders: list[list[Slot]] = [[] for _ in range(problem.devices)]
    kept = (device for device in range(problem.devices) if device < mirror[device])
    for device, order in zip(kept, schedule.orders, strict=True):
        for slot, target in product(order, (device, mirror[device])):
            passes = (_of_chain(problem, chain, p) for p in slot for chain in problem.placement.chains)
            match [p for p in passes if p is not None and where[p.stage] == target]:
                case [one]:
                    orders[target].append((one,))
                case [one, other]:
                    orders[target].append((one, other))
    return Schedule(tuple(map(tuple, orders)), schedule.name)


def _of_chain(problem: Problem, chain: Sequence[StageId], p: Pass) -> Pass | None:
    """Return the pass of the folded problem as one of a chain; None if the chain has no such micro-batch."""
    stage = chain[p.stage]
    walking = problem.microbatches_of[stage]
    return Pass(p.kind, stage, walking[p.microbatch]) if p.microbatch < len(walking) else None
