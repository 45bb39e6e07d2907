"""Renumbering of weight passes: the k-th W of a stage takes the micro-batch of its k-th B.

Runtimes that queue the inputs of W process them in the order of the backwards (JaxPP's carries, the zero-bubble
repository, Megatron's `backward_dw`, Transformer Engine's store). If micro-batches are identical, any order of weight
passes is such an order under other numbers: k Ws follow at least k Bs, so the k-th B is before the k-th W; every pass
keeps its place and its time, and as much memory is freed at the same moments.
"""

from __future__ import annotations

from collections import deque

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import BW, B, Pass, W
from pipesched.problem.quantities import MicrobatchId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline


def weight_microbatches(schedule: Schedule, fused: bool = False) -> dict[Pass, MicrobatchId]:
    """Return for each W the micro-batch that it takes after renumbering.

    The k-th W of a stage takes that of its k-th B. With `fused`, a BW counts as a B and a W in one, and has an entry
    too.
    """
    found: dict[Pass, int] = {}
    waiting: dict[int, deque[int]] = {}
    for p in asking(schedule.passes(), SHORT):
        queue = waiting.setdefault(p.stage, deque())
        if p.kind is B or (p.kind is BW and fused):
            queue.append(p.microbatch)
        if p.kind is W or (p.kind is BW and fused):
            found[p] = queue.popleft()
    return found


def with_weights_in_order(timeline: Timeline) -> dict[Pass, Pass]:
    """Return for each pass of a timeline the pass that runs in its place: W passes are renumbered, all others stay.

    Where micro-batches differ in size, each pass stays as it is.
    """
    schedule = timeline.schedule
    if timeline.problem.walks.scale:
        return {p: p for p in schedule.passes()}
    taken = weight_microbatches(schedule)
    return {p: Pass(p.kind, p.stage, taken.get(p, p.microbatch)) for p in schedule.passes()}
