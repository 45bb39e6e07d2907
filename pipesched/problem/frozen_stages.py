"""Frozen stages before all that trains: no backward, no activation kept for it, nothing for their parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import PassMemory, Stage


def with_frozen_stages(problem: Problem, frozen: Collection[int]) -> Problem:
    """The problem whose passes on these stages are forwards alone; itself where there are none.

    Their backwards have no length, and hold and wait for nothing that a device would notice. Parameters that a stage
    that trains computes with too are still reduced and stepped.
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
    """The stage with forwards alone; its parameters may still be `trained` by another stage that has them."""
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
        once=stage.once if trained else tuple(one._replace(task=one.task._replace(ticks=0)) for one in stage.once),
        forward_only=True,
    )
