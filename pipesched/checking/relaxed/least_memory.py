"""Relaxation without copies and recomputations, in which every activation takes the least memory of its modes."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def with_least_memory(problem: Problem) -> Problem:
    """Return the relaxed problem, whose schedules use no more memory or time, so that its bounds hold for the problem.

    Between its forward and its backward an activation takes the least memory on the device over its modes. The backward
    takes the difference when it begins, so that the level after it is as before. Hosts and shared streams are left out
    too, also where other tasks use such a stream. The problem itself if no activation is offloaded or recomputed and
    transfers or tasks may use one.
    """
    saves = any(stage.offload or stage.recompute for stage in problem.stages)
    if not saves and (problem.resources.transfer_stream or any(stage.tasks for stage in problem.stages)):
        return problem
    return replace(
        problem,
        stages=tuple(map(_least, problem.stages)),
        resources=replace(problem.resources, hosts=(), shared_streams=()),
    )


def _least(stage: Stage) -> Stage:
    amounts = [stage.activation] if stage.may_keep else []
    amounts += [stage.activation - stage.offload.amount] if stage.offload else []
    amounts += [mode.keeps for mode in stage.recompute]
    until_weight = stage.activation - stage.freed
    activation = min(amounts)
    return replace(
        stage,
        activation=activation,
        freed=activation - until_weight,
        offload=None,
        recompute=(),
        may_keep=True,
    )
