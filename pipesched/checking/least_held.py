"""The problem that every schedule with copies and recomputations solves as well: without them, and with less held."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def least_held(problem: Problem) -> Problem:
    """Its bounds are bounds of the problem, whose schedules hold no less at any time and need no less time.

    Between its forward and its backward an activation takes the least of what its ways leave on the device. The
    backward takes what it lacks when it begins, so that after it as much is held as ever.
    """
    if not any(stage.offload or stage.recompute for stage in problem.stages):
        return replace(problem, host_pools=())  # a host holds nothing then
    stages = tuple(_least(stage) for stage in problem.stages)
    return replace(problem, stages=stages, host_pools=(), shared_streams=())


def _least(stage: Stage) -> Stage:
    left = [stage.activation] if stage.may_keep else []
    left += [stage.activation - stage.offload.amount] if stage.offload else []
    left += [way.keeps for way in stage.recompute]
    held_after_backward = stage.activation - stage.freed
    activation = min(left)
    return replace(
        stage,
        activation=activation,
        freed=activation - held_after_backward,
        offload=None,
        recompute=(),
        may_keep=True,
    )
