"""What a choice of modes can gain: a backward run fused or split, a forward and a full backward run as one block."""

from __future__ import annotations

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem


def saved_by_fusing(problem: Problem, stage: int) -> int:
    """By how many ticks a full backward is shorter than B and W."""
    return sum(problem.duration(Pass(kind, stage, 0)) for kind in (B, W)) - problem.duration(Pass(BW, stage, 0))


def block_length(problem: Problem, forward: int, backward: int) -> int | None:
    """The ticks of a block of a forward and a full backward of these stages; None where there is none."""
    return problem.overlapped_ticks(Pass(F, forward, 0), Pass(BW, backward, 0))


def saved_by_block(problem: Problem, forward: int, backward: int) -> int:
    """By how many ticks a block of a forward and a full backward of these stages is shorter than one after the other.

    0 where it is not, or where there is no such block.
    """
    ticks = block_length(problem, forward, backward)
    if ticks is None:
        return 0
    return max(0, problem.duration(Pass(F, forward, 0)) + problem.duration(Pass(BW, backward, 0)) - ticks)


def fused_is_dominated(problem: Problem, stage: int) -> bool:
    """Whether B directly followed by W is never worse than BW: not longer, no more memory, no block to gain by."""
    own = problem.stages[stage]
    if own.weight is None or own.freed < 0:
        return False
    split = own.ticks(B) + own.ticks(W)
    mates = (problem.stages[mate] for mate in problem.placement.on_device_of(stage))
    gains = any(mate.overlapped is not None and mate.overlapped < mate.ticks(F) + split for mate in mates)
    return own.fused >= split and not gains
