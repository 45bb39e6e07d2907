"""Work of a plan's stages for their parameters in addition to that of layers: streams, rules, overheads."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Collective(NamedTuple):
    """A gathering or reduction: its stream, and the time that every stage adds to that of its layers.

    The time is in the file's unit, of all parts together. It runs in `parts` equal parts, or with `each_microbatch`
    once after each micro-batch's backward.
    """

    stream: str
    time: Fraction = Fraction(0)
    parts: int = 1
    each_microbatch: bool = False


class Gathering(NamedTuple):
    """Gathering of parameters; `memory`, in the file's unit, is what every stage adds to those of its layers.

    `once`: each stage gathers them once; `each_pass`: before every F, B and BW, and drops them after it; else a
    schedule decides how often, where all stages together gather at most `most` times. At most `window` stages of a
    device are gathered at once. None means no limit.
    """

    of: Collective
    memory: Fraction = Fraction(0)
    once: bool = False
    most: int | None = None
    window: int | None = None
    each_pass: bool = False


class Parameters(NamedTuple):
    """Work of every stage for its parameters; None for what stages do not run.

    `step` is time added to that of layers.
    """

    gather: Gathering | None = None
    reduce: Collective | None = None
    step: Fraction | None = None

    @property
    def some(self) -> bool:
        """True if stages run anything for their parameters."""
        return any(one is not None for one in self)

    @property
    def runs_once(self) -> bool:
        """False if stages only gather their parameters before each pass; True for other work for them, and for none."""
        return self.reduce is not None or self.step is not None or not (self.gather and self.gather.each_pass)

    @property
    def added(self) -> Fraction:
        """The total time that every stage adds to that of its layers.

        In the file's unit of time.
        """
        gather = self.gather.of.time if self.gather else Fraction(0)
        return gather + (self.reduce.time if self.reduce else 0) + (self.step or 0)


NO_PARAMETERS = Parameters()
