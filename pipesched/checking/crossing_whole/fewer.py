"""Which of the orders that have come equally far are tried further: those that no other can replace."""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_whole.device import Open


@njit(cache=True, nogil=True)
def first_ones(times: Numbers, at: Numbers, way: Way, opened: Open, most: int) -> tuple[Numbers, Numbers]:
    """How many of each group are tried further, and their times; of fewer groups where one has more than `most`."""
    places, kept = way.admitted + 2 * len(way.room), np.empty_like(times)
    sums, counts, total = np.zeros(len(times), np.int64), np.zeros(len(at) - 1, np.int64), 0
    for n in range(len(times)):
        sums[n] = times[n, :places].sum() + (times[n, places:] * opened.ticks).sum()
    for group in range(len(at) - 1):
        since = total
        for n in at[group] + np.argsort(sums[at[group] : at[group + 1]], kind="mergesort"):
            replaced = False
            for other in range(since, total):
                replaced = replaced or _replaces(kept[other], times[n], way, opened)
            if not replaced:
                kept[total] = times[n]
                total += 1
            if total - since > most:
                return counts[:group].copy(), kept[:since].copy()
        counts[group] = total - since
    return counts, kept[:total].copy()


@njit(cache=True, nogil=True)
def _replaces(one: Numbers, other: Numbers, way: Way, opened: Open) -> bool:
    """Whether an order can do all that another can."""
    for time in range(way.admitted + len(way.room)):
        if one[time] > other[time]:
            return False
    for device in range(len(way.room)):  # noqa: SIM110 - Numba compiles no generator
        if not _device_replaces(one, other, device, way, opened):
            return False
    return True


@njit(cache=True, nogil=True)
def _device_replaces(one: Numbers, other: Numbers, device: int, way: Way, opened: Open) -> bool:
    """Whether a device comes to have no more open than another, by the time when that has run all so far.

    Or has no more open, and has run all so far before that can start a step; of each kind that is open it could then
    besides run all that it has less to run, and not be later.
    """
    free, places = way.admitted + device, way.admitted + 2 * len(way.room)
    over = free + len(way.room)
    ended, no_more, in_time = one[over], True, one[over] <= other[free]
    for kind in range(opened.first[device], opened.first[device + 1]):
        besides = other[places + kind] - one[places + kind]
        if besides < 0:
            ended -= besides * opened.ticks[kind]
            no_more = False
        elif one[places + kind] > 0 and one[over] > other[over] + besides * opened.ticks[kind]:
            in_time = False
    return bool(ended <= other[over] or (no_more and in_time))
