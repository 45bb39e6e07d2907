"""An arc between the passes of stages of two chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.network.share import Share


class StageArc(NamedTuple):
    """Micro-batches of stage `after` start their forward (or `backward`) when those of `before` have ended and come.

    The two lie on different chains, and the number of micro-batches of one divides that of the other: each waits for
    its share. Of forwards `after`, of backwards `before` lies on the chain that is fed; where there are `places`, of
    its micro-batches those at these places alone. A backward that `turns` waits for forwards of `before`. Where the
    parts of a pass are joined by a collective, that `barrier` takes the transfer of `before` on its own device, too.
    """

    before: int
    after: int
    backward: bool = False
    places: tuple[int, ...] = ()
    turns: bool = False
    barrier: bool = False

    def share(self, walks: Sequence[range]) -> Share:
        """The micro-batches that wait for each other; `walks` are those of each stage."""
        before, after = walks[self.before], walks[self.after]
        if not self.places:
            return Share(before, after)
        some = tuple((before if self.backward else after)[place] for place in self.places)
        return Share(some, after) if self.backward else Share(before, some)
