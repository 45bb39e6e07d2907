"""Orders that may end below a value, tried forwards; and before that, from the end, how long the rest takes.

The times of an order are those of crossings of steps. The end is the latest of them, each with what must follow it.
That is counted from the last step back: a time is followed by a step that waits for it, and that step by what follows
its own end. Of all steps that may be next, for each time the least is taken, so that no order counts as longer than it
is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import MOST_AT_ONCE, MOST_ROWS, NO, all_next, may_run, told_apart
from pipesched.checking.finding import NotCoveredError

Small = np.ndarray[Any, np.dtype[np.int32]]

# What follows a time that holds nothing up; what follows where no end can be reached; the most numbers there may be.
_NEVER, _FOREVER, _MOST_NUMBERS = -(2**29), 2**29, 60_000_000


def least_end_below(way: Way, width: int, makespan: bool, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    steps, devices = len(way.ticks), len(way.room)
    if way.microbatches * int(way.ticks.sum() + way.after.sum() + way.before.sum()) >= _FOREVER:
        raise NotCoveredError("numbers of too many digits")
    keys, follows = what_follows(way, makespan)
    run, at, rows = np.zeros((1, steps), np.int64), np.array([0, 1]), 0
    times = np.zeros((1, way.admitted + 2 * devices), np.int64)
    for done in range(1, way.microbatches * steps):
        may = may_run(run, way)
        size = int((np.diff(at) * (may > NO).sum(axis=1)).sum())
        rows += size
        if size > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        run, times = all_next(run, at, times, may, way)
        places = np.searchsorted(keys[done], _keys(run, way.admitted))
        ends_before = may_end_before(times, follows[done], places, below)
        if not ends_before.any():
            return below
        run, at, times = told_apart(run[ends_before], times[ends_before], way.admitted, width)
    _, times = all_next(run, at, times, may_run(run, way), way)
    ends = times[:, way.admitted + devices :]
    return min(below, int((ends.max(axis=1) if makespan else ends[:, 0]).min()))


def what_follows(way: Way, makespan: bool) -> tuple[list[Numbers], list[Small]]:
    """By number of steps that have run: the keys of how far orders have come, and what follows each of their times."""
    size, left = way.admitted + 2 * len(way.room), _MOST_NUMBERS
    weights = _weights(len(way.ticks), way.admitted)
    more = np.append(weights[:-1], -weights[:-1].sum())  # by how much each step raises a key
    ways, mays, keys = [np.zeros((1, len(way.ticks)), np.int64)], list[Numbers](), [np.zeros(1, np.int64)]
    for _ in range(way.microbatches * len(way.ticks)):
        mays.append(may_run(ways[-1], way))
        run, key = _one_further(ways[-1], mays[-1], keys[-1], more)
        ways.append(run)
        keys.append(key)
        left -= size * len(key)
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    follows = [np.full((1, size), _NEVER, np.int32)]
    counted = way.admitted + len(way.room)
    follows[0][0, counted : None if makespan else counted + 1] = 0
    for n in reversed(range(len(mays))):
        follows.append(one_back(ways[n], mays[n], keys[n][:, None] + more, keys[n + 1], follows[-1], way))
    return keys, follows[::-1]


def _one_further(run: Numbers, may: Numbers, keys: Numbers, more: Numbers) -> tuple[Numbers, Numbers]:
    """How far orders may have come after a step more, each once, and the keys of that."""
    one, n = np.nonzero(may > NO)
    keys, which = np.unique(keys[one] + more[n], return_index=True)
    after = run[one[which]]
    after[np.arange(len(which)), n[which]] += 1
    return after, keys


def _keys(run: Numbers, admitted: int) -> Numbers:
    return (run - run[:, -1:]) @ _weights(run.shape[1], admitted)


def _weights(steps: int, admitted: int) -> Numbers:
    return np.array([(admitted + 1) ** n for n in range(steps)], np.int64)


@njit(cache=True, nogil=True)
def one_back(run: Numbers, may: Numbers, after: Numbers, keys: Numbers, follows: Small, way: Way) -> Small:
    """What follows the times of orders one step shorter."""
    found = np.full((len(run), follows.shape[1]), _FOREVER, np.int32)
    free, whole = way.admitted, way.admitted + len(way.room)
    now = np.zeros(follows.shape[1], np.int64)
    for one in range(len(run)):
        under_way = run[one, 0] - run[one, -1]
        for n in range(run.shape[1]):
            if may[one, n] == NO:
                continue
            then = follows[np.searchsorted(keys, after[one, n])]
            device, which, back = way.device[n], run[one, n] - run[one, -1], 1 if n + 1 == run.shape[1] else 0
            ends = max(then[free + device], then[which]) if back == 0 else np.int64(then[free + device])
            start = max(way.ticks[n] + ends, way.ticks[n] + way.after[n] + then[whole + device])
            for time in range(free, len(now)):
                start = max(start, np.int64(then[time]))
                now[time] = then[time]
            for time in range(free):
                now[time] = then[time - back] if back <= time < under_way else _NEVER
            if n > 0:
                now[which] = start + way.before[n]
            now[free + device] = start
            now[whole + device] += way.ticks[n] + way.after[n]
            if may[one, n] >= 0:
                now[whole + device] = max(now[whole + device], start - may[one, n] * way.weight[device])
            for time in range(len(now)):
                found[one, time] = max(_NEVER, min(np.int64(found[one, time]), now[time]))
    return found


@njit(cache=True, nogil=True)
def may_end_before(times: Numbers, follows: Small, places: Numbers, value: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which times are, with what follows each of them, before the value."""
    found = np.ones(len(times), np.bool_)
    for order in range(len(times)):
        for time in range(times.shape[1]):
            if times[order, time] + follows[places[order], time] >= value:
                found[order] = False
    return found
