"""Deadlines: a moment of the clock, or a stop by the user, after which no step begins. They are asked, never thrown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event


@dataclass(frozen=True)
class Deadline:
    """Expired from `at` on, in seconds of `clock`, and once `stop` is set.

    Seconds are those of a clock on the wall: on a machine that others share a step takes longer by it, and fewer steps
    fit. What asks before each step is late by one step at most.
    """

    at: float
    stop: Event = field(default_factory=Event)
    clock: Callable[[], float] = time.monotonic

    @staticmethod
    def after(seconds: float, stop: Event | None = None, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """The deadline so many seconds from now."""
        return Deadline(clock() + seconds, stop or Event(), clock)

    def left(self) -> float:
        """Seconds, none after a stop."""
        return 0.0 if self.stop.is_set() else max(0.0, self.at - self.clock())

    def expired(self) -> bool:
        """True if no further step may begin."""
        return self.left() <= 0

    def fits(self, seconds: float) -> bool:
        """True if a step that nothing interrupts, and that takes about so long, ends in time."""
        return seconds < self.left()

    def sooner(self, seconds: float) -> Deadline:
        """The deadline so many seconds from now, or this one if it is earlier."""
        return replace(self, at=min(self.at, self.clock() + seconds))
