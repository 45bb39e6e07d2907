"""Orders, with blocks, that may end below a value, tried forwards.

The times of an order are those of crossings with blocks. The end is the latest of them, each with what must follow it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pipesched.checking.crossing_below.rest import FOREVER, Ahead, Small, key_weights, pairs_from, what_follows
from pipesched.checking.crossing_blocks.orders import all_next_blocks
from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import MOST_AT_ONCE, MOST_ROWS, NO, all_next, may_run, told_apart
from pipesched.checking.finding import NotCoveredError


def least_end_below(way: Way, together: Numbers, width: int, makespan: bool, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    steps, devices = len(way.ticks), len(way.room)
    longest = int(way.ticks.sum() + way.after.sum() + way.before.sum() + together.max(axis=1).clip(0).sum())
    if way.microbatches * longest >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    ahead = what_follows(way, together, makespan)
    run, at, rows = np.zeros((1, steps), np.int64), np.array([0, 1]), 0
    times = np.zeros((1, way.admitted + 2 * devices), np.int64)
    waits = np.empty((0, steps), np.int64), times[:0]
    for done in range(1, way.microbatches * steps):
        may = may_run(run, way)
        pairs = pairs_from(may, together)
        size = int((np.diff(at) * ((may > NO).sum(axis=1) + pairs.sum(axis=(1, 2)))).sum())
        rows += size
        if size > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        after = _in_time(all_next(run, at, times, may, way), ahead[done], way, below)
        blocks = all_next_blocks(run, at, times, may, pairs.astype(np.int64), way, together)
        run, times = (np.concatenate(both) for both in zip(after, waits, strict=True))
        waits = _in_time(blocks, ahead[done + 1], way, below)
        run, at, times = told_apart(run, times, way.admitted, width)
        if not len(run) and not len(waits[0]):
            return below
    _, times = all_next(run, at, times, may_run(run, way), way)
    ends = times[:, way.admitted + devices :]
    return min(below, int((ends.max(axis=1) if makespan else ends[:, 0]).min(initial=below)))


def _in_time(found: tuple[Numbers, Numbers], ahead: Ahead, way: Way, below: int) -> tuple[Numbers, Numbers]:
    """What has not come too late to end below the value."""
    run, times = found
    keys = (run - run[:, -1:]) @ key_weights(way)
    ends_before = may_end_before(times, ahead.follows, np.searchsorted(ahead.keys, keys), below)
    return run[ends_before], times[ends_before]


@njit(cache=True, nogil=True)
def may_end_before(times: Numbers, follows: Small, places: Numbers, value: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which times are, with what follows each of them, before the value."""
    found = np.ones(len(times), np.bool_)
    for order in range(len(times)):
        for time in range(times.shape[1]):
            if times[order, time] + follows[places[order], time] >= value:
                found[order] = False
    return found
