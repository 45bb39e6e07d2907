"""How many orders of each state a search can keep, so that it is through when its time is up."""

from __future__ import annotations

import time
from collections.abc import Callable

# Until so many steps were taken nothing is known of the speed; then so many orders of a state stay.
_UNKNOWN, _FIRST = 24, 8
# A state takes as long as so many orders, however few are kept.
_OF_A_STATE = 1
# Of the time left, since layers later may take longer; and what a step counts for once there is one more.
_SHARE, _PAST = 0.8, 0.97


class Pace:
    """Called after each step with how many there were, and with the number of states: how many orders of each stay.

    0 when the time is up or it is `over`.
    """

    def __init__(self, seconds: float, steps: int, most: int, over: Callable[[], bool]) -> None:
        self._steps, self._most, self._over = steps, most, over
        self._end, self._last = time.monotonic() + seconds, 0.0
        self._took = self._kept = self._keeps = 0.0

    def __call__(self, done: int, states: int) -> int:
        now = time.monotonic()
        if now > self._end or self._over():
            return 0
        if done > 0:
            self._took, self._kept = _PAST * self._took + now - self._last, _PAST * self._kept + self._keeps
        width, self._last = _FIRST, now
        if done >= _UNKNOWN:
            each = self._took / self._kept
            width = int(_SHARE * (self._end - now) / max(1, self._steps - done) / each / states) - _OF_A_STATE
        width = max(1, min(self._most, width))
        self._keeps = (width + _OF_A_STATE) * states
        return width
