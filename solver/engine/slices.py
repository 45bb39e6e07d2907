"""Time slices: each is the time for which a subsolver runs before another one gets its own."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from math import inf
from threading import Event

from solver.backends.paced import Paced
from solver.engine.clock import Clock
from solver.limits import Limits


@dataclass(frozen=True)
class Slice:
    """Slice of a search's time: `seconds` long, from `began` on, both in seconds of the search's clock.

    Under a deterministic limit it is instead an amount of counted work, `units` of about a second each; otherwise
    `units` is None.
    """

    clock: Clock
    began: float
    seconds: float
    units: float | None = None

    def left(self) -> float:
        """Return the seconds left of the slice; infinite where work is counted, which must not depend on the clock."""
        if self.units is not None:
            return inf
        return max(0.0, min(self.began + self.seconds - self.clock.seconds, self.clock.left()))

    def over(self) -> bool:
        return self.left() <= 0

    def counted(self, each: float) -> int | None:
        """Return how many steps the slice may take if each unit of counted work is worth `each` steps.

        None if seconds count.
        """
        return None if self.units is None else max(1, int(self.units * each))

    def share(self, limits: Limits) -> float:
        """Return the length of the slice as a share (0 to 1) of the time or work in `limits`."""
        return self.seconds / limits.seconds if self.units is None else self.units / (limits.deterministic or inf)

    def limits(self, limits: Limits) -> Limits:
        """Return `limits` with the seconds left of this slice, or all its counted work, for a search within it."""
        if self.units is not None:
            return replace(limits, deterministic=self.units)
        return replace(limits, seconds=self.left())


# The work of a subsolver: it gets a slice, yields when that is over, and gets the next one; it returns when nothing is
# left to do.
Work = Generator[None, Slice, None]


def in_slices(stop: Event, work: Callable[[Event], object], take: Callable[[], None], share: float = 1.0) -> Work:
    """Generator that runs `work(stop)` in a thread, slice by slice.

    After each slice the thread sleeps in a query of `stop`. `take()` is called after each slice to collect results. A
    slice gets at most `share` of the time left. Not for counted work.
    """
    paced = Paced(stop, work)
    try:
        while not paced.ended:
            slice_ = yield
            seconds = min(slice_.seconds, slice_.clock.left() * share)
            paced.run(replace(slice_, seconds=seconds).over)
            take()
    finally:
        paced.close()
