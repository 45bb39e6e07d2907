"""The time of one solve: the remaining limit, counted work, and the seconds of each subsolver."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from solver.limits import Limits

# Phases that are no subsolver or construction heuristic; these have their own names.
ANALYTIC, BACKGROUND = "analytic bounds", "local search in the background"


class Clock:
    """Runs from its creation. Under a deterministic limit no decision about counted work may depend on it."""

    def __init__(self, limits: Limits) -> None:
        self._limit = limits.seconds
        self.counts_work = limits.deterministic is not None
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._started

    def share(self, share: float) -> float:
        """The seconds of a share of the time limit."""
        return share * self._limit

    def left(self, share: float = 1.0) -> float:
        """The seconds that are left of the time limit, and no more than this share of it."""
        return max(0.0, min(self.share(share), self._limit - self.seconds))

    def allowed(self, share: float = 1.0) -> float:
        """`left`, but infinite under a deterministic limit: counted work must not depend on the clock."""
        return inf if self.counts_work else self.left(share)


class PartTimes:
    """Seconds by name. Subsolvers that run in parallel count both; one that searches another problem counts as one."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the seconds of the block."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - started

    def taken(self) -> tuple[tuple[str, float], ...]:
        """Names with their seconds, in the order in which they were first there."""
        return tuple(self._seconds.items())
