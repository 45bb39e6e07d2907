"""Activations that are copied to the host and back, or computed again: their passes, modes and memory."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, RELOAD, F, PassKind
from pipesched.problem.stage import Stage

# The passes that move an activation to the host and back.
COPIES = (OFFLOAD, RELOAD)
# The pass that each of these waits for.
_AFTER = {RELOAD: OFFLOAD, OFFLOAD: F, **dict.fromkeys(RECOMPUTATIONS, F)}


def needs(kind: PassKind, stage: int) -> list[Need]:
    """The pass that a copy or a recomputation waits for: of a copy back the copy out, of the others the forward."""
    return [Need(((_AFTER[kind], stage),), 0)]


def needs_of_backward(number: int, stage: Stage) -> Iterator[Need]:
    """The copy back or the recomputation that a backward waits for, if there is one."""
    saving = tuple((kind, number) for kind in stage.saving_kinds if kind is not OFFLOAD)
    if saving:
        yield Need(saving, 0, optional=True)


def options(stage: Stage) -> tuple[frozenset[PassKind], ...]:
    """The sets of passes of one of which a micro-batch runs all, for each activation mode."""
    of_mode: dict[PassKind | None, frozenset[PassKind]] = {kind: frozenset((kind,)) for kind in stage.saving_kinds}
    of_mode |= {None: frozenset(), OFFLOAD: frozenset(COPIES)}
    return tuple(of_mode[mode] for mode in stage.held_until_backward)


def change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Memory of the device that such a pass takes when it starts and when it ends (negative: gives back)."""
    if kind in RECOMPUTATIONS:
        return given_up(stage, kind), 0
    moved = host_change(stage, OFFLOAD)[0]
    return (0, -moved) if kind is OFFLOAD else (moved, 0)


def given_up(stage: Stage, kind: PassKind) -> int:
    """Memory that a micro-batch's F gives back when it ends because a pass of this kind takes it again."""
    return stage.activation - stage.recompute[RECOMPUTATIONS.index(kind)].keeps if kind in RECOMPUTATIONS else 0


def host_change(stage: Stage, kind: PassKind) -> tuple[int, int]:
    """Host memory that a pass takes when it starts and when it ends (negative: gives back)."""
    moved = stage.offload.amount if stage.offload is not None and kind in COPIES else 0
    return (moved, 0) if kind is OFFLOAD else (0, -moved)
