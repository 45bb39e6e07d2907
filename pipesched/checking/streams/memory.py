"""Argument: until memory is freed, only so many forwards of a device can begin.

Passes begun by an instant hold no more than the memory and what may have been freed before. So of a stream's forwards
only a limited number has run by then; of its other tasks only those that need not begin later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from pipesched.checking.devices.one_device import most_in
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.streams.task_paths import Node, TaskPaths
from pipesched.checking.streams.tasks import TasksBetween, between_by_chain, limited_room, split_and_checked
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.results.evidence import StreamMemory


def stream_memory(problem: Problem, evidence: StreamMemory) -> Fraction:
    """Return the bound, in ticks: the head, the work of the stream that must begin later than the head, and the tail.

    The head is an instant, and the tail the least time that remains after each task of that work; both are given by the
    evidence. Raises `RefusedEvidenceError` if no work must begin later, if the device has no limit of memory, or if the
    evidence's owner does not fit the objective; `NotCoveredError` where backwards cannot all be split.
    """
    device = evidence.device
    room, problem = limited_room(problem, device), split_and_checked(problem, evidence)
    items: list[tuple[int, int, int]] = []
    head = tail = Fraction(0)
    given = later = others = sure = 0
    for between, count in between_by_chain(problem, evidence):
        paths, head, tail = between.paths, between.head, between.tail
        given += sum(amount * _ended_by(between, ends, count) for ends, amount in _freed_memory(paths, device))
        for node in between.on(device, evidence.stream):
            ticks, inside = paths.ticks[node], between.inside(node) * paths.ticks[node]
            if node.kind is F:
                later += sum(t >= tail for t in between.tails[node] or ()) * ticks
                sure += inside
                items.append((ticks, node.stage, count))
            else:
                others += inside
    work = others + max(sure, later - most_in(room + given, _by_stage(problem, items)))
    if work <= 0:
        raise RefusedEvidenceError(f"nothing is left for later on stream {evidence.stream} of device {device}")
    return head + work + tail


def _freed_memory(paths: TaskPaths, device: DeviceId) -> Iterator[tuple[list[Node], MemorySteps]]:
    """Yield the last tasks of each kind of pass on the device that frees memory, with the amount that it frees."""
    problem = paths.problem
    for stage in {node.stage for node, where in paths.where.items() if where[0] == device}:
        own = problem.stages[stage]
        frees: dict[PassKind, int] = {BW: own.activation}
        if own.weight is not None:
            frees = {B: max(0, own.freed), W: own.activation - own.freed}
        for kind, amount in frees.items():
            tasks = own.tasks_of(kind)
            ends = range(len(tasks)) if kind is W else range(len(tasks) - 1, len(tasks))
            yield [Node(kind, stage, number) for number in ends], amount


def _ended_by(between: TasksBetween, ends: Sequence[Node], count: int) -> int:
    """Return how many of a chain's `count` micro-batches may have ended a pass before the evidence's head.

    `ends` are the last tasks of the pass.
    """
    heads, ticks = between.heads, between.paths.ticks
    known = [[time + ticks[end] for time in own] for end in ends if (own := heads[end]) is not None]
    if not known:
        return count
    return sum(max(each) < between.head for each in zip(*known, strict=True))


def _by_stage(problem: Problem, items: Sequence[tuple[Ticks, StageId, int]]) -> list[tuple[Ticks, MemorySteps, int]]:
    """Return (ticks of its forward on the stream, memory of its activation, number of micro-batches) of each stage.

    `items` are (ticks of a task, stage, number of micro-batches) of the forwards' tasks.
    """
    ticks: dict[int, int] = {}
    counts = {stage: count for _, stage, count in items}
    for own, stage, _ in items:
        ticks[stage] = ticks.get(stage, 0) + own
    return [(ticks[stage], problem.stages[stage].activation, count) for stage, count in counts.items()]
