"""Parameter work of a plan's stages besides what their layers say: streams, rules, overheads."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Collective(NamedTuple):
    """Gathering or reduction: the stream that runs it, and the time that every stage adds to that of its layers.

    It runs in so many equal `parts`, or once after the backward of `each_microbatch`.
    """

    stream: str
    time: Fraction = Fraction(0)
    parts: int = 1
    each_microbatch: bool = False


class Gathering(NamedTuple):
    """Gathering of parameters; `memory` is what every stage adds to what its layers' hold while they are there.

    `once`: they are gathered once; `each_pass`: before every F, B and BW, and dropped after it. Of all stages together
    they are gathered `most` times at most, and those of `window` stages of a device are there at once at most; None: no
    limit.
    """

    of: Collective
    memory: Fraction = Fraction(0)
    once: bool = False
    most: int | None = None
    window: int | None = None
    each_pass: bool = False


class Parameters(NamedTuple):
    """Parameter work of the stages; None where they run none. `step` is the time that every stage adds to its own."""

    gather: Gathering | None = None
    reduce: Collective | None = None
    step: Fraction | None = None

    @property
    def some(self) -> bool:
        """True if stages run anything for their parameters."""
        return any(one is not None for one in self)

    @property
    def runs_once(self) -> bool:
        """False if all that stages run for their parameters belongs to a pass of a micro-batch."""
        return self.reduce is not None or self.step is not None or not (self.gather and self.gather.each_pass)

    @property
    def added(self) -> Fraction:
        """The times that every stage adds to those of its layers, all together."""
        gather = self.gather.of.time if self.gather else Fraction(0)
        return gather + (self.reduce.time if self.reduce else 0) + (self.step or 0)


NO_PARAMETERS = Parameters()
