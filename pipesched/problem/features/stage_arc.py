"""A precedence between passes of two stages on different chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.network.share import Share
from pipesched.problem.quantities import StageId


class StageArc(NamedTuple):
    """A precedence between stages.

    Passes of stage `after` start when those of stage `before` have ended and their tensors have arrived. The precedence
    is about forwards, or with `backward` about backwards. The stages lie on different chains, and the number of
    micro-batches of one divides that of the other: each micro-batch waits for its share. With `places`, only the fed
    chain's micro-batches at these positions, from 0 on that chain, take part (the fed chain is that of `after` for
    forwards, of `before` for backwards); empty for all. With `waits_for_forwards` a backward waits for forwards of
    `before`. With `barrier` a collective joins the parts of a pass, and the transfer time of `before` applies even on
    one device.
    """

    before: StageId
    after: StageId
    backward: bool = False
    places: tuple[int, ...] = ()
    waits_for_forwards: bool = False
    barrier: bool = False

    def share(self, walks: Sequence[range]) -> Share:
        """Return the micro-batches of `before` and of `after` that the arc connects.

        `walks` are the micro-batches of each stage.
        """
        before, after = walks[self.before], walks[self.after]
        if not self.places:
            return Share(before, after)
        some = tuple((before if self.backward else after)[place] for place in self.places)
        return Share(some, after) if self.backward else Share(before, some)
