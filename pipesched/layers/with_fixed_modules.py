"""The modules of a plan problem as stages of the problem of a partition."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipesched.layers.fixed_module import FixedModule, Joins
from pipesched.problem.chains.with_modules import with_modules, with_shared
from pipesched.problem.features.module import Module
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage

if TYPE_CHECKING:
    from pipesched.layers.plan_problem import PlanProblem


def with_fixed_modules(problem: Problem, plan: PlanProblem) -> Problem:
    """Return the problem of a partition with the plan problem's modules as further stages.

    A collective that joins the parts of a module takes as long as the longest transfer; parts after the last stage have
    two of them for each micro-batch. `ValueError` if the problem has several chains, or several additions of the plan
    problem have modules.
    """
    feeding = [module for module in plan.modules if module.joins is Joins.FEEDS]
    in_parts = [module for module in plan.modules if module.joins is not Joins.FEEDS]
    for module in feeding:
        problem = _with_feeding(problem, module, plan)
    return _with_parts(problem, in_parts, plan) if in_parts else problem


def _with_feeding(problem: Problem, own: FixedModule, plan: PlanProblem) -> Problem:
    """Return the problem with a module whose chains take passes in turn and feed the first stage."""
    trunk, passes = problem.placement, problem.microbatches // own.serves
    stages = _stages(own, plan, trunk.stages + len(own.stages), passes)
    first, (length, *_) = trunk.chains[0][0], map(len, own.chains)
    module = Module(own.layer.name, trunk.stages, length, len(own.chains), (first,), own.serves)
    where = tuple(stage.device for stage in own.stages)
    placement = Placement("", problem.devices, where, module._replace(first=0).chains)
    return with_modules(problem, [(module, replace(problem, placement=placement, stages=stages, pools=()))])


def _with_parts(problem: Problem, modules: list[FixedModule], plan: PlanProblem) -> Problem:
    """Return the problem joined with modules of which every device has a part, in the plan's ticks and memory steps."""
    number, lag = sum(len(own.parts) for own in modules), plan.ticks(plan.cluster.longest_lag)
    shared = [
        (own.layer.name, [replace(part, transfer=lag) for part in _stages(own, plan, number, problem.microbatches)])
        for own in modules
    ]
    return with_shared(problem, shared, [own.layer.name for own in modules if own.joins is Joins.PARTS_AFTER])


def _stages(own: FixedModule, plan: PlanProblem, number: int, passes: int) -> tuple[Stage, ...]:
    return tuple(plan.stage(one.costs, in_pieces=False, stages=number, passes=passes) for one in own.stages)
