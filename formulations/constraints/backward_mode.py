"""Constraint: every backward runs either split (B and a later W) or full (BW, B and W fused)."""

from __future__ import annotations

from collections import Counter

from formulations.constraints.catalogue import CONSTRAINTS, Constraint
from formulations.jobs.jobs import Jobs
from formulations.variables.literals import negation
from formulations.variables.model_variables import Model
from pipesched.problem.passes import BW, B, F, W
from pipesched.schedule.timeline import Timeline


def check(timeline: Timeline) -> bool:
    """True if each micro-batch has on each stage one F and one BW, or one F, one B and one W if the problem splits."""
    problem = timeline.problem
    count_of_pass = Counter(timeline.schedule.passes())
    for stage in range(problem.placement.stages):
        for j in problem.microbatches_of[stage]:
            counts = [count_of_pass[kind, stage, j] for kind in (F, B, W, BW)]  # type: ignore[index]
            if counts != [1, 0, 0, 1] and not (problem.pipeline.splits and counts == [1, 1, 1, 0]):
                return False
    return True


def post(model: Model) -> None:
    """Post that a W starts after the end of its backward, and if that is fused, right then, with nothing between.

    Its duration is 0 in that mode (`Model.duration`).
    """
    ops = model.operations
    for weight, backward in ops.backward_of.items():
        fused = model.fused[weight.stage, weight.microbatch]
        model.cp.add(model.start[weight] >= model.end(backward))
        model.cp.add(model.start[weight] == model.end(backward)).only_enforce_if(fused)
        for z in ops.on[ops.resources(weight)[0]]:
            after, weight_before = model.before(backward, z), model.before(weight, z)
            if z not in (backward, weight) and after is not None and weight_before is not None:
                # Whatever follows the backward follows its weight operation too.
                model.cp.add_bool_or(negation(fused), negation(after), weight_before)


CONSTRAINTS.register(Constraint("fused or split", check, post, posted_if=Jobs.have_modes))
