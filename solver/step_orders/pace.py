"""How many orders of each state a search can keep, so that it is through when its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable

# Until so many steps were taken nothing is known of the speed; then so many orders of a state stay.
_UNKNOWN, _FIRST = 24, 8
# Of the time left, since layers later may take longer.
_SHARE = 0.9


class Pace:
    """Called after each step with how many there were, and with the number of states: how many orders of each stay.

    0 when the time is up or it is `over`.
    """

    def __init__(self, seconds: float, steps: int, most: int, over: Callable[[], bool]) -> None:
        self._steps, self._most, self._over = steps, most, over
        self._end, self._began, self._kept = time.monotonic() + seconds, 0.0, 0

    def __call__(self, done: int, states: int) -> int:
        now = time.monotonic()
        if now > self._end or self._over():
            return 0
        width = _FIRST
        if done == 0:
            self._began = now
        if done >= _UNKNOWN:
            each = (now - self._began) / self._kept
            width = int(_SHARE * (self._end - now) / max(1, self._steps - done) / each / states)
        width = max(1, min(self._most, width))
        self._kept += width * states
        return width
