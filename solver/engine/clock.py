"""The time of one solve: what has passed of the limit, what is left, and what counted work may take."""

from __future__ import annotations

import time
from math import inf

from solver.limits import Limits


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
        """As `left`, but without end under a deterministic limit: counted work must not depend on the clock."""
        return inf if self.counts_work else self.left(share)
