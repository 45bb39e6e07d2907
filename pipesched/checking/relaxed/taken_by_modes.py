"""Argument: copies and recomputations take memory of a device without a forward or a backward of it."""

from __future__ import annotations

from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, RELOAD, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId


def taken_by_modes(problem: Problem, device: DeviceId) -> frozenset[PassKind]:
    """Return the kinds of copies and recomputations that take memory of a device.

    Its own copies back and recomputations do, and copies out of other devices whose activations move to it.
    """
    found = set[PassKind]()
    for number, stage in enumerate(problem.stages):
        if not len(problem.microbatches_of[number]):
            continue
        here, copies = problem.placement.stage_device[number] == device, stage.offload
        if copies is not None and copies.amount:
            found |= {RELOAD} if here else set()
            found |= {OFFLOAD} if copies.to == device else set()
        if here:
            again = zip(RECOMPUTATIONS, stage.recompute, strict=False)
            found |= {kind for kind, mode in again if mode.keeps < stage.activation}
    return frozenset(found)
