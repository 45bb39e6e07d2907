"""Bounded knapsack: the greatest value that fits; exact for up to two kinds of item, an upper bound for more."""

from __future__ import annotations

from fractions import Fraction
from math import floor


def most_value(items: list[tuple[int, int, int]], room: int | None) -> int:
    """Return the greatest value of items that fit into `room`, or an upper bound of it; items are (value, size, count).

    Exact for up to two kinds of item with a positive size; for more, the fractional knapsack rounded down, since values
    are integers. All items of size 0 or less fit. `room` None means no limit; a negative one counts as 0.
    """
    room = None if room is None else max(0, room)
    counts: dict[tuple[int, int], int] = {}
    for value, size, count in items:
        counts[value, size] = counts.get((value, size), 0) + count
    free = sum(value * count for (value, size), count in counts.items() if room is None or size <= 0)
    kinds = [(v, s, n) for (v, s), n in counts.items() if room is not None and s > 0]
    if room is None or not kinds:
        return free
    (value, size, count), *others = kinds
    if len(others) < 2:
        choices = range(min(count, room // size) + 1)
        return free + max(n * value + _as_many(others, room - n * size) for n in choices)
    total, left = Fraction(0), Fraction(room)
    for value, size, count in sorted(kinds, key=lambda kind: -Fraction(kind[0], kind[1])):
        taken = min(Fraction(count), left / size)
        total += value * taken
        left -= size * taken
    return free + floor(total)


def _as_many(kinds: list[tuple[int, int, int]], room: int) -> int:
    """Return the total value of as many items as fit into `room`; `kinds` has at most one (value, size, count)."""
    return sum(value * min(count, room // size) for value, size, count in kinds)
