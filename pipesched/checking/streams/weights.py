"""Argument: when the backwards of a device have ended, no more weight tasks are left than its memory holds.

An activation is on its device from its backward to the end of its weight tasks, whatever became of it before: copies
and recomputations are left out, and their time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from pipesched.checking.coverage import require_covered
from pipesched.checking.devices.one_device import most_in
from pipesched.checking.finding import NotCoveredError, RefusedEvidenceError
from pipesched.checking.streams.task_paths import Node, TaskPaths
from pipesched.checking.streams.tasks import KNOWN, in_two, limited_room, require_owner, to_and_from
from pipesched.problem.passes import B, W
from pipesched.problem.problem import Problem
from pipesched.results.evidence import StreamWeights


def stream_weights(problem: Problem, evidence: StreamWeights) -> Fraction:
    """The head, what must run on the stream until the tail is left, and the tail."""
    stages = tuple(replace(stage, offload=None, recompute=(), may_keep=True) for stage in problem.stages)
    problem = replace(problem, stages=stages, host_pools=(), shared_streams=())
    require_covered(problem, KNOWN)
    owner, device = evidence.owner, evidence.device
    require_owner(problem, owner)
    room = limited_room(problem, device)
    problem = in_two(problem)
    if any(stage.weight is None for stage in problem.stages):
        raise NotCoveredError("backwards without weight passes")
    finer = evidence.tick / problem.tick
    head, tail = evidence.head * finer, evidence.tail * finer
    others = sure = whole = 0
    items: list[tuple[int, int, int]] = []
    for chain in problem.placement.chains:
        count = len(problem.microbatches_of[chain[0]])
        if not count:
            continue
        paths = TaskPaths(problem, chain)
        heads, tails = to_and_from(paths, owner)
        on_stream = [node for node, where in paths.where.items() if where == (device, evidence.stream)]
        for node in on_stream:
            begin, left = heads[node], tails[node]
            if begin is not None and left is not None:
                inside = sum(h >= head and t >= tail for h, t in zip(begin, reversed(left), strict=True))
                others += inside * paths.ticks[node] * (node.kind is not W)
                sure += inside * paths.ticks[node] * (node.kind is W)
        for stage in chain:
            weights = [node for node in on_stream if node.kind is W and node.stage == stage]
            if weights:
                behind = _behind(paths, stage, weights, (heads, tails), count, (head, tail))
                ticks = sum(paths.ticks[node] for node in weights)
                whole += ticks * behind
                own = problem.stages[stage]
                items.append((ticks, own.activation - own.freed, behind))
    work = others + max(sure, whole - most_in(room, items))
    if work <= 0:
        raise RefusedEvidenceError(f"nothing is sure to run on stream {evidence.stream} of device {device}")
    return head + work + tail


def _behind(
    paths: TaskPaths,
    stage: int,
    weights: Sequence[Node],
    ways: tuple[dict[Node, list[int] | None], dict[Node, list[int] | None]],
    count: int,
    between: tuple[Fraction, Fraction],
) -> int:
    """How many weight passes of a stage begin no sooner than the head, behind backwards ended when the tail is left."""
    (heads, tails), (head, tail) = ways, between
    last = tails[Node(B, stage, len(paths.problem.stages[stage].tasks_of(B)) - 1)]
    ended = 0 if last is None else sum(t >= tail for t in last)
    early = [count if (own := heads[node]) is None else sum(h < head for h in own) for node in weights]
    return max(0, ended - max(early))
