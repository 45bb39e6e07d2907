"""Constraint: every backward runs either split (B and a later W) or fused (BW)."""

from __future__ import annotations

from collections import Counter

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.variables.model_variables import Model
from formulations.variables.operations import Operation
from formulations.variables.order_literals import negation
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """Each micro-batch on each stage: F, and either BW or both B and W; B ends before W starts."""
    problem = timeline.problem
    held = Counter(timeline.schedule.passes())
    for stage in range(problem.placement.stages):
        for j in problem.microbatches_of[stage]:
            counts = [held[kind, stage, j] for kind in (F, B, W, BW)]  # type: ignore[index]
            if counts == [1, 0, 0, 1]:
                continue
            if not problem.splittable or counts != [1, 1, 1, 0]:
                return False
            if timeline.start(Pass(W, stage, j)) < timeline.end(Pass(B, stage, j)):
                return False
    return True


def post(model: Model) -> None:
    """A fused backward's weight operation has zero duration and comes right after it."""
    for (stage, j), fused in model.fused.items():
        backward, weight = Operation(B, stage, j), Operation(W, stage, j)
        if weight not in model.start:
            continue
        model.cp.add(model.start[weight] >= model.end(backward))
        if isinstance(fused, bool):
            continue
        model.cp.add(model.start[weight] == model.end(backward)).only_enforce_if(fused)
        device = (model.order or {}).get(model.problem.placement.stage_device[stage])
        if device is None:
            continue
        for z in device.operations:
            if z not in (backward, weight):
                # What comes after the backward comes after its weight operation too.
                not_after = negation(device.before(backward, z))
                model.cp.add_bool_or(negation(fused), not_after, device.before(weight, z))


CONSTRAINTS.register(Constraint("fused or split", check, post))
