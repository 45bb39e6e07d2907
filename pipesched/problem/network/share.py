"""Micro-batches of one stage that wait for micro-batches of another stage on a different chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.quantities import MicrobatchId


class Share(NamedTuple):
    """A rule by which the micro-batches listed in `after` wait for those listed in `before`.

    The length of one list divides that of the other. Lists of equal length pair by position. If `after` is longer,
    consecutive micro-batches of it wait for the same one; if `before` is longer, each micro-batch in `after` waits for
    several consecutive ones.
    """

    before: Sequence[MicrobatchId]
    after: Sequence[MicrobatchId]

    def numbers(self, microbatch: MicrobatchId) -> Sequence[MicrobatchId]:
        """Return the micro-batches of `before` that one of `after` waits for; empty for one that is not in `after`."""
        if microbatch not in self.after:
            return ()
        place, here, there = self.after.index(microbatch), len(self.after), len(self.before)
        return self.before[place * there // here : -(-(place + 1) * there // here)]

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all pairs of a micro-batch of `before` and one of `after` that waits for it.

        They are two arrays of equal length with the micro-batches' numbers.
        """
        each = np.arange(max(len(self.before), len(self.after)) if self.before and self.after else 0)
        before, after = np.array(self.before, np.int64), np.array(self.after, np.int64)
        most = max(1, len(each))
        return before[each * len(before) // most], after[each * len(after) // most]
