"""Memory of its device and of its host that the passes of a stage take and give back."""

from __future__ import annotations

from pipesched.problem.features import parameters
from pipesched.problem.passes import (
    BW,
    OF_PARAMETERS,
    OFFLOAD,
    RECOMPUTATIONS,
    RELOAD,
    B,
    F,
    PassKind,
)
from pipesched.problem.stage import Stage


def device_change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Memory that a pass takes when it starts and when it ends (negative: gives back), in the memory's integers.

    What F gives back at its end where it is recomputed is in `given_up`.
    """
    taken, given = _change_of_activation(stage, kind)
    running = stage.workspace.workspace(kind)
    return taken + running + stage.until_end.until_end(kind), given - running


def _change_of_activation(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Of `device_change`, all but workspace and what stays until the end."""
    if kind in OF_PARAMETERS:
        return parameters.change(stage, kind)
    if kind in (OFFLOAD, RELOAD):
        moved = host_change(stage, OFFLOAD)[0]
        return (0, -moved) if kind is OFFLOAD else (moved, 0)
    if kind in RECOMPUTATIONS:
        return given_up(stage, kind), 0
    if kind is F:
        return stage.activation + stage.lent, 0
    if kind is BW:
        return 0, -stage.activation - stage.collected
    at_start = max(0, -stage.freed) if kind is B else 0
    return at_start, -max(0, stage.freed) - stage.collected if kind is B else stage.freed - stage.activation


def given_up(stage: Stage, kind: PassKind) -> int:
    """Memory that a micro-batch's F gives back when it ends because a pass of this kind takes it again."""
    return stage.activation - stage.recompute[RECOMPUTATIONS.index(kind)].keeps if kind in RECOMPUTATIONS else 0


def host_change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Host memory that a pass takes when it starts and when it ends (negative: gives back)."""
    moved = stage.offload.amount if stage.offload is not None and kind in (OFFLOAD, RELOAD) else 0
    return (moved, 0) if kind is OFFLOAD else (0, -moved)
