"""Time of one solve: the time limit, the choice to count work instead, and the seconds used by each subsolver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from solver.limits import Limits

# Phases that are no subsolver or construction heuristic; these have their own names.
ANALYTIC, BACKGROUND = "analytic bounds", "local search in the background"


class Clock:
    """Wall clock of a solve, started when it is created, with the time limit in seconds.

    `counts_work` is True under a deterministic limit; no decision about work may then depend on the clock.
    """

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.seconds
        self.counts_work = limits.deterministic is not None
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the clock was created."""
        return time.monotonic() - self._started

    def share(self, share: float) -> float:
        """Return a share (0 to 1) of the time limit, in seconds."""
        return share * self._limit

    def left(self, share: float = 1.0) -> float:
        """Return the seconds until the time limit, but at most `share` (0 to 1) of the limit; 0 after it."""
        return max(0.0, min(self.share(share), self._limit - self.seconds))

    def allowed(self, share: float = 1.0) -> float:
        """Return the seconds until the time limit, but at most `share` (0 to 1) of the limit.

        Under a deterministic limit infinity, since work is counted then, and must not depend on the clock.
        """
        return inf if self.counts_work else self.left(share)


class PartTimes:
    """Seconds for which each subsolver, construction heuristic or other phase ran, by its name.

    Subsolvers that run in parallel each count their full time. A subsolver that runs others within it counts as one.
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Context whose run time is added to the seconds of `name`."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - started

    def taken(self) -> tuple[tuple[str, float], ...]:
        """Return (name, seconds) pairs in the order in which the first use of each name ended."""
        return tuple(self._seconds.items())
