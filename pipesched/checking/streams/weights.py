"""Argument: when the backwards of a device have ended, at most as many weight tasks remain as its memory admits.

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
from pipesched.checking.streams.task_paths import Node
from pipesched.checking.streams.tasks import KNOWN, TasksBetween, between_by_chain, limited_room, split_and_checked
from pipesched.problem.passes import B, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.results.evidence import StreamWeights


def stream_weights(problem: Problem, evidence: StreamWeights) -> Fraction:
    """Return the bound, in ticks: the head, the work of the stream that must run before the tail, and the tail.

    Raises `NotCoveredError` where backwards cannot all be split, or for quantities that the check does not know, and
    `RefusedEvidenceError` if no work must run before the tail, if the device has no limit of memory, or if the
    evidence's owner does not fit the objective.
    """
    stages = tuple(replace(stage, offload=None, recompute=(), may_keep=True) for stage in problem.stages)
    problem = replace(problem, stages=stages, resources=replace(problem.resources, hosts=(), shared_streams=()))
    require_covered(problem, KNOWN)
    device = evidence.device
    room, problem = limited_room(problem, device), split_and_checked(problem, evidence)
    if any(stage.weight is None for stage in problem.stages):
        raise NotCoveredError("backwards without weight passes")
    others = sure = whole = 0
    head = tail = Fraction(0)
    items: list[tuple[int, int, int]] = []
    for between, count in between_by_chain(problem, evidence):
        ticks_of, head, tail = between.paths.ticks, between.head, between.tail
        of_stage: dict[int, list[Node]] = {}
        for node in between.on(device, evidence.stream):
            if node.kind is W:
                sure += between.inside(node) * ticks_of[node]
                of_stage.setdefault(node.stage, []).append(node)
            else:
                others += between.inside(node) * ticks_of[node]
        for stage, weights in of_stage.items():
            number = _number_within(between, stage, weights, count)
            ticks = sum(ticks_of[node] for node in weights)
            whole += ticks * number
            own = problem.stages[stage]
            items.append((ticks, own.activation - own.freed, number))
    work = others + max(sure, whole - most_in(room, items))
    if work <= 0:
        raise RefusedEvidenceError(f"nothing is sure to run on stream {evidence.stream} of device {device}")
    return head + work + tail


def _number_within(between: TasksBetween, stage: StageId, weights: Sequence[Node], count: int) -> int:
    """Return how many weight passes of a stage begin at `between.head` or later, with backwards that end by its tail.

    The stage has `count` micro-batches; `weights` are the tasks of its W.
    """
    last = between.tails[Node(B, stage, len(between.paths.problem.stages[stage].tasks_of(B)) - 1)]
    ended = sum(t >= between.tail for t in last or ())
    early = [count if (own := between.heads[node]) is None else sum(h < between.head for h in own) for node in weights]
    return max(0, ended - max(early))
