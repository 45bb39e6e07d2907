"""The times labelled on an axis: multiples of 1, 2 or 5 times a power of ten."""

from __future__ import annotations

from math import ceil, floor, log10


def round_times(since: float, until: float, most: int) -> list[float]:
    """Return all multiples of a round step from `since` to `until`, ascending: at most `most` + 1 of them.

    Only `since` itself, round or not, if `until` is not later.
    """
    if until <= since:
        return [since]
    step = _round_step((until - since) / max(most, 1))
    return [number * step for number in range(ceil(since / step - 1e-9), floor(until / step + 1e-9) + 1)]


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least `least`."""
    power = 10.0 ** floor(log10(least))
    return next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= least)
