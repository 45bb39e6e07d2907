"""Frozen stages before the first one that trains: forwards only, with no activation kept and no work for parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId
from pipesched.problem.stage import PassMemory, Stage


def with_frozen_stages(problem: Problem, frozen: Collection[StageId]) -> Problem:
    """Return the problem in which the stages `frozen` run forwards only; the problem itself if `frozen` is empty.

    They must have no blocks, and no modes that save activations. Their backwards remain as passes of no duration that
    take no memory. Parameters that they share with a stage that trains are still reduced and updated.
    """
    if not frozen:
        return problem
    holder = problem.parameters.holder
    trained = {holder(stage) for stage in range(len(problem.stages)) if stage not in frozen}
    stages = tuple(
        frozen_stage(stage, s in trained) if s in frozen else stage for s, stage in enumerate(problem.stages)
    )
    return replace(problem, stages=stages)


def frozen_stage(stage: Stage, trained: bool = False) -> Stage:
    """Return the stage with backwards that take no time and no memory, for which its forwards keep no activation.

    The stage must have no blocks, and no modes that save its activation. With `trained`, a stage that trains shares its
    parameters, so its reductions and optimizer steps keep their ticks; else they take none.
    """
    return replace(
        stage,
        backward=0,
        weight=None if stage.weight is None else 0,
        fused=0,
        activation=0,
        freed=0,
        workspace=PassMemory(stage.workspace.forward),
        until_end=PassMemory(stage.until_end.forward),
        tasks=tuple(
            (kind, own if kind is F else tuple(task._replace(ticks=0) for task in own if not task.gathers))
            for kind, own in stage.tasks
        ),
        once=tuple(
            one if trained or one.of_all else one._replace(task=one.task._replace(ticks=0)) for one in stage.once
        ),
        forward_only=True,
    )
