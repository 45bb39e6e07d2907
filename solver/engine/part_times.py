"""How many seconds each part of the engine took, by its name: what the ablation chooses its problems by."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

# What is no part or opening; these have their own names.
ANALYTIC, BESIDE = "analytic bounds", "local search beside others"


class PartTimes:
    """Seconds by name. Parts that run beside each other count both; a part that searches another problem is one."""

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
