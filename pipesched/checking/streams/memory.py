"""Argument: until something is given back, memory lets only so many forwards of a device begin.

What has begun by an instant holds no more than the memory and what may have been given back before. So of a stream's
forwards only so much has run by then; of its other tasks only those that need not begin later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from pipesched.checking.devices.one_device import most_in
from pipesched.checking.finding import RefusedEvidenceError
from pipesched.checking.streams.task_paths import Node, TaskPaths
from pipesched.checking.streams.tasks import in_two, limited_room, require_owner, to_and_from
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.results.evidence import StreamMemory


def stream_memory(problem: Problem, evidence: StreamMemory) -> Fraction:
    """The instant, all of the stream that runs later and is followed by no less than the tail, and that tail."""
    owner, device = evidence.owner, evidence.device
    require_owner(problem, owner)
    room = limited_room(problem, device)
    problem = in_two(problem)
    finer = evidence.tick / problem.tick
    head, tail = evidence.head * finer, evidence.tail * finer
    given = 0
    items: list[tuple[int, int, int]] = []
    later = others = sure = 0
    for chain in problem.placement.chains:
        count = len(problem.microbatches_of[chain[0]])
        if not count:
            continue
        paths = TaskPaths(problem, chain)
        heads, tails = to_and_from(paths, owner)
        given += sum(amount * _ended_by(heads, paths, ends, count, head) for ends, amount in _gifts(paths, device))
        for node, where in paths.where.items():
            if where != (device, evidence.stream):
                continue
            begin, left = heads[node] or [-1] * count, tails[node]
            late = [t >= tail for t in reversed(left)] if left is not None else [False] * count
            inside = sum(after and h >= head for h, after in zip(begin, late, strict=True)) * paths.ticks[node]
            if node.kind is F:
                later, sure = later + sum(late) * paths.ticks[node], sure + inside
                items.append((paths.ticks[node], node.stage, count))
            else:
                others += inside
    work = others + max(sure, later - most_in(room + given, _by_stage(problem, items)))
    if work <= 0:
        raise RefusedEvidenceError(f"nothing is left for later on stream {evidence.stream} of device {device}")
    return head + work + tail


def _gifts(paths: TaskPaths, device: int) -> Iterator[tuple[list[Node], int]]:
    """The tasks after which a pass of the device has ended, and what it gives back then."""
    problem = paths.problem
    for stage in {node.stage for node, where in paths.where.items() if where[0] == device}:
        own = problem.stages[stage]
        gives: dict[PassKind, int] = {BW: own.activation}
        if own.weight is not None:
            gives = {B: max(0, own.freed), W: own.activation - own.freed}
        for kind, amount in gives.items():
            tasks = own.tasks_of(kind)
            ends = range(len(tasks)) if kind is W else range(len(tasks) - 1, len(tasks))
            yield [Node(kind, stage, number) for number in ends], amount


def _ended_by(
    heads: dict[Node, list[int] | None], paths: TaskPaths, ends: Sequence[Node], count: int, head: Fraction
) -> int:
    """How many of these passes may have ended before an instant."""
    known = [[time + paths.ticks[end] for time in own] for end in ends if (own := heads[end]) is not None]
    if not known:
        return count
    return sum(max(each) < head for each in zip(*known, strict=True))


def _by_stage(problem: Problem, items: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Of each stage the ticks of a forward on the stream, what it takes of the memory, and how many there are."""
    ticks: dict[int, int] = {}
    counts = {stage: count for _, stage, count in items}
    for own, stage, _ in items:
        ticks[stage] = ticks.get(stage, 0) + own
    return [(ticks[stage], problem.stages[stage].activation, count) for stage, count in counts.items()]
