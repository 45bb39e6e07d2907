"""Constraint (symmetry breaking): on each stage, tasks of one type run in micro-batch order.

Some optimal schedule satisfies it: see `Operations.in_microbatch_order`.
"""

from __future__ import annotations

from itertools import pairwise

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.passes import BW, B, Pass, PassKind, W
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if on each stage, or on each group of stages that form a queue, passes of one kind run in micro-batch order.

    B and BW count as one kind. A W counts only on a stage where the split backward is never worse than the full one
    (`fused_is_dominated`).
    """
    problem, lines = timeline.problem, dict[tuple[PassKind, int], list[Pass]]()
    for p in timeline.schedule.passes():
        role = B if p.kind is BW else p.kind
        if role is not W or fused_is_dominated(problem, p.stage):
            lines.setdefault((role, p.stage if role is W else problem.queue_of[p.stage]), []).append(p)
    for line in lines.values():
        line.sort(key=lambda p: p.microbatch)
        if any(timeline.start(other) < timeline.end(one) for one, other in pairwise(line)):
            return False
    return True


def post(model: Model) -> None:
    """Post that operations start after the end of the same operation of the previous micro-batch.

    This is for the operations in `in_microbatch_order`, of which some optimal schedule keeps that order. Where only the
    numbers of micro-batches are free, it is for the first operation of each of them alone.
    """
    ops = model.operations
    for earlier, x in (*ops.in_microbatch_order.items(), *(ops.interchangeable if model.known.numbered else ())):
        model.cp.add(model.start[x] >= model.end(earlier))


CONSTRAINTS.register(Constraint("micro-batch order", check, post, of_problem=False))
