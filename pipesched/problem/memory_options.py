"""Modes of a stage that keep less of an activation between forward and backward: offload, or recomputation.

Offload is as in PipeOffload (arXiv 2503.01328), recomputation as in Chen et al. (arXiv 1604.06174), each decided for a
stage and a micro-batch. An activation is either kept, or offloaded, or recomputed in one of the modes.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks


class Offload(NamedTuple):
    """The copies of an activation to other memory and back: ticks and stream of each, and the `amount` of memory that
    moves.

    The other memory is that of the device `to`, shared with its own passes, or that of the host (None). Memory of the
    stage's device is freed when the copy out ends and taken again when the copy in starts; the other memory is taken
    when the copy out starts and freed when the copy in ends. The streams are of the stage's device; the amount is in
    steps of the resolution.
    """

    out_ticks: Ticks
    in_ticks: Ticks
    out_stream: str
    in_stream: str
    amount: MemorySteps
    to: DeviceId | None = None


class Recomputation(NamedTuple):
    """A mode of recomputation: the forward runs again for `ticks`, and until then only `keeps` of the activation is in
    memory.

    `name` is that of the task that runs it. The amount is in steps of the resolution.
    """

    name: str
    ticks: Ticks
    keeps: MemorySteps
