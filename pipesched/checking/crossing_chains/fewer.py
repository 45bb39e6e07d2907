"""Which times of orders that have come equally far are kept distinct, compiled."""

from __future__ import annotations

import numpy as np

from pipesched.checking.diagram.walk import Numbers
from pipesched.compiled import compiled

_LATE = 2**62


@compiled
def fewer(times: Numbers, at: Numbers, width: int) -> tuple[Numbers, Numbers]:
    """Of times that belong together those kept distinct, and how many these are; they come with least sums first.

    What is in no time earlier than another is left out. Of what remains the first ones stay, by sums, then as words are
    sorted; each further one makes that of them earlier which it is earlier than by the least.
    """
    kept, counts, total = np.empty_like(times), np.zeros(len(at) - 1, np.int64), 0
    for group in range(len(at) - 1):
        since = total
        for n in range(at[group], at[group + 1]):
            if not _one_before(kept, since, total, times[n]):
                place = total
                while place > since and _sorted_before(times[n], kept[place - 1]):
                    kept[place] = kept[place - 1]
                    place -= 1
                kept[place] = times[n]
                total += 1
        stay = kept[since : min(total, since + width)].copy()
        for n in range(since + len(stay), total):
            _make_earlier(kept[since : since + len(stay)], stay, kept[n])
        total = since + len(stay)
        counts[group] = len(stay)
    return counts, kept[:total].copy()


@compiled
def _one_before(kept: Numbers, since: int, total: int, times: Numbers) -> bool:
    """Whether something that is kept is in no time later."""
    for one in range(since, total):
        n = 0
        while n < len(times) and kept[one, n] <= times[n]:
            n += 1
        if n == len(times):
            return True
    return False


@compiled
def _make_earlier(kept: Numbers, stay: Numbers, times: Numbers) -> None:
    nearest, least = 0, np.int64(_LATE)
    for n in range(len(stay)):
        differ = np.int64(0)
        for place in range(len(times)):
            differ += max(0, stay[n, place] - times[place])
        if differ < least:
            nearest, least = n, differ
    for place in range(len(times)):
        kept[nearest, place] = min(kept[nearest, place], times[place])


@compiled
def _sorted_before(one: Numbers, other: Numbers) -> bool:
    """Whether times of the same sum come first as words would; those of another sum stay where they are."""
    if one.sum() != other.sum():
        return False
    for a, b in zip(one, other):  # noqa: B905 - Numba knows no strict
        if a != b:
            return bool(a < b)
    return False
