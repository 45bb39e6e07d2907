"""Activations that are offloaded or recomputed: what these passes wait for, the modes, and their memory.

`Stage.tasks_of` makes the passes.
"""

from __future__ import annotations

from pipesched.problem.network.task_network import Need
from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, RELOAD, F, PassKind
from pipesched.problem.quantities import MemorySteps, StageId
from pipesched.problem.stage import Stage

# The passes that move an activation to other memory and back.
COPIES = (OFFLOAD, RELOAD)
# The pass that each of these waits for.
_AFTER = {RELOAD: OFFLOAD, OFFLOAD: F, **dict.fromkeys(RECOMPUTATIONS, F)}


def needs(kind: PassKind, stage: StageId) -> list[Need]:
    """Return what a copy or recomputation on a stage waits for: a copy back for the copy out, the other kinds for F."""
    return [Need(((_AFTER[kind], stage),), 0)]


def need_of_backward(number: StageId, stage: Stage) -> Need:
    """Return what a backward waits for in addition: the copy back or the recomputation of its activation, if one runs.

    The stage, of this `number`, must be able to offload or recompute.
    """
    return Need(tuple((kind, number) for kind in stage.saving_kinds if kind is not OFFLOAD), 0, optional=True)


def options(stage: Stage) -> tuple[frozenset[PassKind], ...]:
    """Return by activation mode of a stage the set of kinds of saving passes (copies or a recomputation) in that mode.

    Each micro-batch runs exactly one of these sets. The empty set keeps the activation.
    """
    of_mode: dict[PassKind | None, frozenset[PassKind]] = {kind: frozenset((kind,)) for kind in stage.saving_kinds}
    of_mode |= {None: frozenset(), OFFLOAD: frozenset(COPIES)}
    return tuple(of_mode[mode] for mode in stage.memory_until_backward)


def change(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the device memory that a copy or recomputation takes at its start and at its end, in steps.

    A negative number frees. A copy out frees at its end; a copy back and a recomputation take at their start.
    """
    if kind in RECOMPUTATIONS:
        return given_up(stage, kind), 0
    moved = change_elsewhere(stage, OFFLOAD)[0]
    return (0, -moved) if kind is OFFLOAD else (moved, 0)


def given_up(stage: Stage, kind: PassKind) -> MemorySteps:
    """Return the memory, in steps, that F frees at its end because a pass of `kind` recomputes the activation later.

    It is 0 if `kind` is a copy.
    """
    return stage.activation - stage.recompute[RECOMPUTATIONS.index(kind)].keeps if kind in RECOMPUTATIONS else 0


def change_elsewhere(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a copy takes at its start and at its end in the host or device to which activations move.

    Both are in steps of the resolution; negative: frees.
    """
    moved = stage.offload.amount if stage.offload is not None and kind in COPIES else 0
    return (moved, 0) if kind is OFFLOAD else (0, -moved)
