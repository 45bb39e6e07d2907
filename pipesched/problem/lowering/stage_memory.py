"""Device memory that the passes of a stage take and free."""

from __future__ import annotations

from pipesched.problem.features import parameters, saved_activations
from pipesched.problem.passes import BW, OF_PARAMETERS, SAVING, B, F, PassKind
from pipesched.problem.quantities import MemorySteps
from pipesched.problem.stage import Stage


def device_change(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a pass takes at its start and at its end, in steps of the resolution (negative: frees).

    The memory that F frees at its end because the activation is recomputed later is left out (see
    `saved_activations.given_up`).
    """
    taken, given = _change_of_activation(stage, kind)
    running = stage.workspace.workspace(kind) if any(stage.workspace) else 0
    staying = stage.until_end.until_end(kind) if any(stage.until_end) else 0
    return taken + running + staying, given - running


def _change_of_activation(stage: Stage, kind: PassKind) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a pass takes at its start and at its end.

    It is that of `device_change`, without the memory of running passes. Left out are workspace and memory kept until
    the end of the iteration.
    """
    if kind in OF_PARAMETERS:
        return parameters.change(stage, kind)
    if kind in SAVING:
        return saved_activations.change(stage, kind)
    if kind is F:
        return stage.activation + stage.kv_cache.taken, 0
    if kind is BW:
        return 0, -stage.activation - stage.kv_cache.released
    at_start = max(0, -stage.freed) if kind is B else 0
    return at_start, -max(0, stage.freed) - stage.kv_cache.released if kind is B else stage.freed - stage.activation
