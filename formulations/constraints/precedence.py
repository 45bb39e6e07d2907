"""Constraint: a pass starts when its predecessors have ended and their tensors have arrived."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from pipesched.problem.passes import BW, B, Pass
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Plain reading of the problem's needs."""
    problem, is_fused = timeline.problem, timeline.schedule.is_fused
    return all(
        timeline.start(p) >= timeline.end(before) + lag
        for p in timeline.schedule.passes()
        for before, lag in problem.needs(p, is_fused)
    )


def post(model: Model) -> None:
    """The same, operation by operation; a BW is the operation of role B."""
    for x in model.start:
        kind = x.role if x.role is not B or model.problem.splittable else BW
        for before, lag in model.problem.needs(
            Pass(kind, x.stage, x.microbatch), lambda *_: not model.problem.splittable
        ):
            role = B if before.kind is BW else before.kind
            earlier = Operation(role, before.stage, before.microbatch)
            model.cp.add(model.start[x] >= model.end(earlier) + lag * model.scale)


CONSTRAINTS.register(Constraint("precedence", check, post))
