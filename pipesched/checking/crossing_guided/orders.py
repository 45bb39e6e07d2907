"""Orders of some stages that may end below a value, for all that is seen of fewer stages, tried forwards, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_guided.sight import Sight
from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import (
    MOST_AT_ONCE,
    MOST_ROWS,
    NO,
    all_next,
    may_run,
    next_steps,
    run_step,
    told_apart,
    until_something_comes,
)
from pipesched.checking.finding import NotCoveredError

_LATE = 2**60


def least_end_guided(way: Way, sight: Sight, width: int, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    steps, devices, rows = len(way.ticks), len(way.room), 0
    run, at = np.zeros((1, steps), np.int64), np.array([0, 1])
    times = np.zeros((1, way.admitted + 2 * devices), np.int64)
    for _ in range(1, way.microbatches * steps):
        may = may_run(run, way)
        rows += int((np.diff(at) * (may > NO).sum(axis=1)).sum())
        run, times = next_in_time(run, at, times, may, way, sight, below)
        if len(run) > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        if not len(run):
            return below
        run, at, times = told_apart(run, times, way.admitted, width)
    _, times = all_next(run, at, times, may_run(run, way), way)
    return min(below, int(times[:, way.admitted + devices].min(initial=below)))


@njit(cache=True, nogil=True)
def next_in_time(
    run: Numbers, at: Numbers, times: Numbers, may: Numbers, way: Way, sight: Sight, below: int
) -> tuple[Numbers, Numbers]:
    """How far each order has come after each step that may be next, and its times, if it may end below the value."""
    size, found = 2 * len(times) + 1, 0
    after, new = np.empty((size, run.shape[1]), np.int64), np.empty((size, times.shape[1]), np.int64)
    comes, reached, now = np.zeros(way.admitted, np.int64), np.zeros(run.shape[1], np.int64), np.zeros_like(times[0])
    seen = np.zeros(len(times[0]), np.int64)
    for one in range(len(run)):
        for n in range(run.shape[1]):
            if may[one, n] == NO:
                continue
            reached[:] = run[one]
            reached[n] += 1
            under_way = next_steps(reached, comes)
            if not seen_from(reached, comes, under_way, way, sight, seen):
                continue
            for k in range(at[one], at[one + 1]):
                now[:] = times[k]
                run_step(now, n, run[one, n] - run[one, -1], may[one, n], way)
                until_something_comes(now, comes[:under_way], reached[0] < way.microbatches, way)
                if (now + seen < below).all():
                    if found == size:
                        size *= 2
                        after, new = _longer(after, size), _longer(new, size)
                    after[found], new[found] = reached, now
                    found += 1
    return after[:found], new[:found]


@njit(cache=True, nogil=True)
def seen_from(reached: Numbers, comes: Numbers, under_way: int, way: Way, sight: Sight, seen: Numbers) -> bool:
    """Fill in what follows each time at least, as orders of the fewer stages say it.

    Nothing where these have run all. False where none of them that memory admits comes so far, and to an end.
    """
    seen[:] = -_LATE
    key, done, back = np.int64(0), np.int64(0), reached[sight.steps[-1]]
    for place, n in enumerate(sight.steps):
        key += sight.weights[place] * (reached[n] - back)
        done += reached[n]
    if done == way.microbatches * len(sight.steps):
        return True
    since, until = sight.at[done], sight.at[done + 1]
    row = since + np.searchsorted(sight.keys[since:until], key)
    if row == until or sight.keys[row] != key:
        return False
    for which in range(back - reached[-1], min(under_way, reached[sight.steps[0]] - reached[-1])):
        follows = sight.follows[row, which - (back - reached[-1])]
        seen[which] = follows - sight.alone[comes[which]] - sight.sooner
    for number, column in enumerate(sight.columns):
        follows = sight.follows[row, sight.admitted + number]
        seen[column] = max(seen[column], follows - sight.sooner)
    return True


@njit(cache=True, nogil=True)
def _longer(rows: Numbers, size: int) -> Numbers:
    found = np.empty((size, rows.shape[1]), np.int64)
    found[: len(rows)] = rows
    return found
