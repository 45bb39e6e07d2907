"""Micro-batches of one stage that wait for micro-batches of another stage on a different chain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.quantities import MicrobatchId


class Share(NamedTuple):
    """A rule by which micro-batches in `after` wait for those in `before`.

    The length of one list divides that of the other. With equal lengths each waits for the one at its own position.
    With more in `after`, several consecutive ones wait for one in common; with more in `before`, one waits for several.
    """

    before: Sequence[MicrobatchId]
    after: Sequence[MicrobatchId]

    def numbers(self, microbatch: MicrobatchId) -> Sequence[MicrobatchId]:
        """Return the micro-batches of `before` that a micro-batch of `after` waits for; none for one that is not in
        `after`."""
        if microbatch not in self.after:
            return ()
        place, here, there = self.after.index(microbatch), len(self.after), len(self.before)
        return self.before[place * there // here : -(-(place + 1) * there // here)]

    def pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return all pairs of a micro-batch of `before` and one of `after` that waits for it, as two arrays of equal
        length with the micro-batches' numbers."""
        each = np.arange(max(len(self.before), len(self.after)) if self.before and self.after else 0)
        before, after = np.array(self.before, np.int64), np.array(self.after, np.int64)
        most = max(1, len(each))
        return before[each * len(before) // most], after[each * len(after) // most]
