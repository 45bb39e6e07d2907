"""The problem that every schedule with copies and recomputations solves as well: without them, and with less held."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def with_least_memory(problem: Problem) -> Problem:
    """Its bounds are bounds of the problem, whose schedules hold no less at any time and need no less time.

    Between its forward and its backward an activation takes the least of what its ways leave on the device. The
    backward takes what it lacks when it begins, so that after it as much is held as ever. Hosts and links are left out
    with the copies, where nothing else uses a link.
    """
    saves = any(stage.offload or stage.recompute for stage in problem.stages)
    if not saves and (problem.transfer_stream or any(stage.tasks for stage in problem.stages)):
        return problem
    return replace(problem, stages=tuple(map(_least, problem.stages)), host_pools=(), shared_streams=())


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
