"""Constraint (symmetry breaking): on each stage, passes of one kind run in micro-batch order."""

from __future__ import annotations

from itertools import pairwise

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from formulations.variables.operations import StaticOrder
from pipesched.problem.passes import BW, B, Pass, PassKind
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Each line sorted by start is sorted by micro-batch."""
    static = StaticOrder(timeline.problem)
    lines: dict[tuple[PassKind, int], list[Pass]] = {}
    for p in timeline.schedule.passes():
        role = B if p.kind is BW else p.kind
        if static.in_microbatch_order(role, p.stage):
            lines.setdefault(static.line(role, p.stage), []).append(p)
    for line in lines.values():
        line.sort(key=lambda p: p.microbatch)
        if any(timeline.start(other) < timeline.end(one) for one, other in pairwise(line)):
            return False
    return True


def post(model: Model) -> None:
    """Each operation after the one of the micro-batch before."""
    for x in model.start:
        earlier = model.static.before_in_line(x)
        if earlier is not None and model.static.in_microbatch_order(x.role, x.stage):
            model.cp.add(model.start[x] >= model.end(earlier))


CONSTRAINTS.register(Constraint("micro-batch order", check, post, of_problem=False))
