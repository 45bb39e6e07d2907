"""What the passes of a stage take of the memory of its device and of its host, and give back."""

from __future__ import annotations

from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, PassKind, W
from pipesched.problem.stage import Stage


def device_change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """What a pass takes when it starts and when it ends (negative: gives back), in the memory's integers.

    What F gives back at its end where it is recomputed is in `given_up`.
    """
    if kind in (OFFLOAD, RELOAD):
        moved = host_change(stage, OFFLOAD)[0]
        return (0, -moved) if kind is OFFLOAD else (moved, 0)
    if kind in RECOMPUTATIONS:
        return given_up(stage, kind), 0
    if kind is F:
        return stage.activation + stage.lent, 0
    if kind is BW:
        return 0, -stage.activation - stage.collected
    if kind is B:
        return max(0, -stage.freed), -max(0, stage.freed) - stage.collected
    return 0, stage.freed - stage.activation if kind is W else 0


def given_up(stage: Stage, kind: PassKind) -> int:
    """What a micro-batch's F gives back when it ends because a pass of this kind takes it again."""
    return stage.activation - stage.recompute[RECOMPUTATIONS.index(kind)].keeps if kind in RECOMPUTATIONS else 0


def host_change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """What a pass takes of its host's memory when it starts and when it ends (negative: gives back)."""
    moved = stage.offload.amount if stage.offload is not None and kind in (OFFLOAD, RELOAD) else 0
    return (moved, 0) if kind is OFFLOAD else (0, -moved)
