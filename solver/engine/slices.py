"""Slices of the time: what a part of the search may take before others have their turn."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from math import inf

from solver.engine.clock import Clock
from solver.limits import Limits


@dataclass(frozen=True)
class Slice:
    """So many seconds from `began` on; or, where work is counted instead of time, units of it, about a second each."""

    clock: Clock
    began: float
    seconds: float
    units: float | None = None

    def left(self) -> float:
        """The seconds left of it; without end where work is counted, since that must not depend on the clock."""
        if self.units is not None:
            return inf
        return max(0.0, min(self.began + self.seconds - self.clock.seconds, self.clock.left()))

    def over(self) -> bool:
        return self.left() <= 0

    def counted(self, each: float) -> int | None:
        """How much work of which a second does so much; None where seconds count."""
        return None if self.units is None else max(1, int(self.units * each))

    def limits(self, limits: Limits) -> Limits:
        """Those of a search that has this slice."""
        if self.units is not None:
            return replace(limits, deterministic=self.units)
        return replace(limits, seconds=self.left())


# What a part does: it gets a slice, yields when that is over, and gets the next one; it returns when nothing is left
# to do.
Work = Generator[None, Slice, None]
