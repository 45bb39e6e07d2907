"""Which times of orders that have come equally far are told apart, compiled for thousands of them.

The same as `crossing_steps.orders.fewer`, found sooner: each order has a number of a few digits for each of its times,
which says to about where the time lies among those of the others. If one order is in no time later than another, no
digit of its number is larger; so times are compared only where that holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pipesched.checking.crossing_below.rest import Small
from pipesched.checking.crossing_steps.argument import Numbers

# Binary digits of a number in all; numbers that are compared before any of the times behind them are.
_DIGITS, _TOGETHER = 63, 32


class Apart(NamedTuple):
    """How far orders have come, by keys; the times of number n are `times[at[n]:at[n + 1]]`."""

    keys: Numbers
    at: Numbers
    times: Small


def told_apart_by_key(keys: Numbers, times: Small, width: int) -> Apart:
    """Orders that have come equally far side by side, and of their times those that are told apart."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    at = np.flatnonzero(np.diff(keys, prepend=-1))
    counts, kept = not_later(times, order, np.append(at, len(keys)), width)
    return Apart(keys[at], np.append(0, np.cumsum(counts)), kept)


@njit(cache=True, nogil=True)
def not_later(times: Small, order: Numbers, at: Numbers, width: int) -> tuple[Numbers, Small]:
    """How many of each group are told apart, and their times; `order` has the groups one behind the other.

    What is in no time earlier than another is left out. Of what remains the first ones stay, by sums, then as words are
    sorted; each further one makes that of them earlier which it is earlier than by the least.
    """
    kept, counts, total = np.empty_like(times), np.zeros(len(at) - 1, np.int64), 0
    digits = np.empty(len(times), np.int64)
    for group in range(len(at) - 1):
        own, size, since = times[order[at[group] : at[group + 1]]], at[group + 1] - at[group], total
        numbers, tops, sums = _numbers(own)
        for one in np.sort(sums * size + np.arange(size)) % size:
            if not _one_before(kept[since:total], digits[since:total], own[one], numbers[one], tops):
                kept[total], digits[total] = own[one], numbers[one]
                total += 1
        if total - since > width:
            rest = kept[since:total].copy()
            _sort(rest)
            _make_earlier(rest, width)
            total = since + width
            kept[since:total] = rest[:width]
        counts[group] = total - since
    return counts, kept[:total].copy()


@njit(cache=True, nogil=True)
def _numbers(times: Small) -> tuple[Numbers, int, Numbers]:
    """A number for the times of each order; the digits above those of each time, no number has one; and the sums.

    Of times that all have in common no digit says anything, and where there are many times, the last ones have none.
    """
    count, size = times.shape
    low, high, sums = times[0].astype(np.int64), times[0].astype(np.int64), np.zeros(count, np.int64)
    for one in range(count):
        for time in range(size):
            low[time], high[time] = min(low[time], times[one, time]), max(high[time], times[one, time])
            sums[one] += times[one, time]
    which = np.flatnonzero(low < high)[: _DIGITS // 2]
    digits = min(20, _DIGITS // max(1, len(which)))
    # A larger time never has a smaller product, also when rounded.
    per_tick, tops = ((1 << (digits - 1)) - 0.5) / np.maximum(1, high - low), 0
    for place in range(len(which)):
        tops |= 1 << (place * digits + digits - 1)
    found = np.zeros(count, np.int64)
    for one in range(count):
        number = np.int64(0)
        for place in range(len(which)):
            time = which[place]
            number |= np.int64((times[one, time] - low[time]) * per_tick[time]) << (place * digits)
        found[one] = number
    return found, tops, sums


@njit(cache=True, nogil=True)
def _one_before(kept: Small, numbers: Numbers, times: Small, number: int, tops: int) -> bool:
    """Whether something that is kept is in no time later."""
    for since in range(0, len(numbers), _TOGETHER):
        if not _some_may_be(numbers[since : since + _TOGETHER], number | tops, tops):
            continue
        for one in range(since, min(since + _TOGETHER, len(numbers))):
            if ((number | tops) - numbers[one]) & tops == tops and _no_later(kept[one], times):
                return True
    return False


@njit(cache=True, nogil=True)
def _no_later(one: Small, other: Small) -> bool:
    for time in range(len(one)):  # noqa: SIM110 - Numba compiles no generator
        if one[time] > other[time]:
            return False
    return True


@njit(cache=True, nogil=True)
def _some_may_be(numbers: Numbers, topped: int, tops: int) -> bool:
    """Whether no digit of one of the numbers is larger: then all the tops stay when it is taken away."""
    many = 0
    for one in range(len(numbers)):
        many += (topped - numbers[one]) & tops == tops
    return many > 0


@njit(cache=True, nogil=True)
def _make_earlier(times: Small, width: int) -> None:
    """Each one behind the first ones makes that of them earlier which it is earlier than by the least."""
    stay, differ = np.ascontiguousarray(times[:width].T), np.empty(width, np.int64)
    for one in range(width, len(times)):
        differ[:] = 0
        for time in range(len(stay)):
            for n in range(width):
                differ[n] += max(0, stay[time, n] - times[one, time])
        nearest = differ.argmin()
        for time in range(len(stay)):
            times[nearest, time] = min(times[nearest, time], times[one, time])


@njit(cache=True, nogil=True)
def _sort(times: Small) -> None:
    """Those of the same sum, which stand side by side, as words are sorted."""
    sums = times.sum(axis=1)
    for one in range(1, len(times)):
        place, row = one, times[one].copy()
        while place > 0 and sums[place - 1] == sums[one] and _comes_first(row, times[place - 1]):
            times[place] = times[place - 1]
            place -= 1
        times[place] = row


@njit(cache=True, nogil=True)
def _comes_first(one: Small, other: Small) -> bool:
    for time in range(len(one)):
        if one[time] != other[time]:
            return bool(one[time] < other[time])
    return False
