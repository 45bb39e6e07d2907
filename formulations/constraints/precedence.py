"""Constraint: a pass starts when its predecessors have ended and their tensors have arrived."""

from __future__ import annotations

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from pipesched.problem.passes import BW, B
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Plain reading of the problem's needs."""
    network, held = timeline.problem.network, timeline.schedule.pass_set
    return all(
        timeline.start(p) >= timeline.end(before) + lag
        for p in timeline.schedule.passes()
        for before, lag in network.predecessors(p, held)
    )


def post(model: Model) -> None:
    """The same, operation by operation; a BW is the operation of role B."""
    for x in model.start:
        kind = x.role if x.role is not B or model.problem.splittable else BW
        for alternatives, lag, _, shift, _ in model.problem.network.needs[kind, x.stage]:
            before, stage = alternatives[0]
            earlier = Operation(B if before is BW else before, stage, x.microbatch + shift)
            model.cp.add(model.start[x] >= model.end(earlier) + lag * model.scale)


CONSTRAINTS.register(Constraint("precedence", check, post))
