"""Modes of a stage that keep less of an activation between forward and backward: offload, or recomputation.

Offload is as in PipeOffload (arXiv 2503.01328), recomputation as in Chen et al. (arXiv 1604.06174), each decided for a
stage and a micro-batch. An activation is either kept, or offloaded, or recomputed in one of the modes.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks


class Offload(NamedTuple):
    """The copies of an activation out to other memory and back: ticks and stream of each, and the `amount` that moves.

    The other memory is that of device `to`, or of the host if `to` is None. Memory of the stage's device is free from
    the end of the copy out to the start of the copy back; the other memory is in use from the start of the copy out to
    the end of the copy back. Both streams belong to the stage's device; the amount is in steps of the resolution.
    """

    out_ticks: Ticks
    in_ticks: Ticks
    out_stream: str
    in_stream: str
    amount: MemorySteps
    to: DeviceId | None = None


class Recomputation(NamedTuple):
    """A mode of recomputation: before the backward the stage's forward runs once more, for `ticks`.

    From the end of the forward until then, only `keeps` of the activation is in memory, in steps of the resolution.
    `name` is the name of the task that recomputes.
    """

    name: str
    ticks: Ticks
    keeps: MemorySteps
