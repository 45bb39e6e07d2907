"""Devices on which an iteration may begin or end: with a task that waits for none, or that none waits for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Arc, PassType, TaskNetwork, TaskType
from pipesched.problem.passes import BW, OFFLOAD, ONCE, RELOAD, B, F, PassKind, W
from pipesched.problem.quantities import DeviceId, MicrobatchId

# Kinds of passes that run in any case, and those of which one runs if another does.
_ALWAYS = {F, *ONCE}
_WITH: dict[PassKind, PassKind] = {W: B, RELOAD: OFFLOAD}


def devices_with_open_ends(network: TaskNetwork) -> frozenset[DeviceId]:
    """Return the devices that have a task without a certain predecessor or without a certain successor.

    If this is one device, its first task is the first of all and its last task the last of all in every schedule: every
    task of another device then has a predecessor and a successor on this one, by arcs that apply in all modes.
    Gatherings of parameters and their drops count as open on both sides, since what they wait for depends on the order.
    """
    return frozenset(
        network.device_of[of[1]]
        for of, tasks in asking(network.tasks.items(), SHORT)
        if network.numbers[of]
        for part in range(len(tasks))
        if not _waits(network, TaskType(*of, part)) or not _is_awaited(network, TaskType(*of, part))
    )


def _waits(network: TaskNetwork, task: TaskType) -> bool:
    """Return True if in all modes the task of every micro-batch waits for some other task."""
    numbers = network.numbers[task.pass_type]
    return any(
        arc.after == task
        and not arc.optional
        and (arc.share is None or (arc.share.before and _are_among(numbers, arc.share.after)))
        for arc in network.arcs_into[task.pass_type]
    )


def _is_awaited(network: TaskNetwork, task: TaskType) -> bool:
    """Return True if in all modes some other task waits for the task of every micro-batch.

    The backward of a micro-batch may be fused or split.
    """
    after: set[PassType] = {arc.after.pass_type for arc in _out_of(network, task)}
    return any(
        kind in _ALWAYS
        or (kind, stage) == task.pass_type
        or _WITH.get(kind) is task.kind
        or (kind in (B, BW) and all((one, stage) in after for one in (B, BW) if (one, stage) in network.tasks))
        for kind, stage in after
    )


def _out_of(network: TaskNetwork, task: TaskType) -> Iterator[Arc]:
    """Yield the arcs by which other tasks wait for the task of every micro-batch, not of some micro-batches alone."""
    numbers = network.numbers[task.pass_type]
    for arc in network.arcs_from[task]:
        if arc.share is None or (arc.share.after and _are_among(numbers, arc.share.before)):
            yield arc


def _are_among(numbers: Sequence[MicrobatchId], others: Sequence[MicrobatchId]) -> bool:
    return numbers == others or set(numbers) <= set(others)
