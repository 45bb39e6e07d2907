"""Overlapped blocks: a forward and a full backward on one device that run together, as one task."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import Ticks


class Blocks(NamedTuple):
    """Durations of the blocks that a stage's passes may be in: one of the two numbers.

    `ticks` is the duration of one block of this stage's forward and a full backward, whichever stage that is of. Or
    `saves` are the ticks that a block with one of this stage's passes takes less than the two in turn, unless the stage
    of the other pass saves less. Where both are None, the stage's forward is in no block.
    """

    ticks: Ticks | None = None
    saves: Ticks | None = None


NO_BLOCKS = Blocks()
