"""An arc between the passes of two stages of a device."""

from __future__ import annotations

from typing import NamedTuple


class StageArc(NamedTuple):
    """The n-th micro-batch of stage `after` starts its forward (or its `backward`) when that of `before` has ended.

    The two lie on different chains, which equally many micro-batches walk, and on one device.
    """

    before: int
    after: int
    backward: bool = False
