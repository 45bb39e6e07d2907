"""Micro-batches of one stage that wait for those of another, where the two belong to different chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Share(NamedTuple):
    """A micro-batch of `after` waits for those of `before` that are the same share of all of them.

    Both as numbers in their order; the length of one divides that of the other. So each waits for the one at its place,
    or several for one in common, or one for several.
    """

    before: Sequence[int]
    after: Sequence[int]

    def numbers(self, microbatch: int) -> Sequence[int]:
        """The numbers of `before` that this micro-batch waits for."""
        if microbatch not in self.after:
            return ()
        place, here, there = self.after.index(microbatch), len(self.after), len(self.before)
        return self.before[place * there // here : -(-(place + 1) * there // here)]

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All that wait, with what they wait for: numbers of `before` and of `after` side by side."""
        each = np.arange(max(len(self.before), len(self.after)) if self.before and self.after else 0)
        before, after = np.array(self.before, np.int64), np.array(self.after, np.int64)
        most = max(1, len(each))
        return before[each * len(before) // most], after[each * len(after) // most]
