"""Orders, with blocks, that may end below a value, tried forwards.

The times of an order are those of crossings with blocks. The end is the latest of them, each with what must follow it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_below.rest import FOREVER, Ahead, key_weights, pairs_from, what_follows
from pipesched.checking.crossing_blocks.orders import run_block
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


def least_end_below(way: Way, together: Numbers, width: int, makespan: bool, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    steps, devices = len(way.ticks), len(way.room)
    longest = int(way.ticks.sum() + way.after.sum() + way.before.sum() + together.max(axis=1).clip(0).sum())
    if way.microbatches * longest >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    ahead, weights = what_follows(way, together, makespan), key_weights(way)
    run, at, rows = np.zeros((1, steps), np.int64), np.array([0, 1]), 0
    times = np.zeros((1, way.admitted + 2 * devices), np.int64)
    waits = np.empty((0, steps), np.int64), times[:0]
    for done in range(1, way.microbatches * steps):
        may = may_run(run, way)
        pairs = pairs_from(may, together)
        rows += int((np.diff(at) * ((may > NO).sum(axis=1) + pairs.sum(axis=(1, 2)))).sum())
        # A step and none, or a forward and a gradient.
        alone, blocks = np.argwhere(may > NO), np.argwhere(pairs)
        alone = np.column_stack([alone, np.full(len(alone), NO)])
        after = next_before(run, at, times, may, alone, way, together, weights, ahead[done], below)
        behind = next_before(run, at, times, may, blocks, way, together, weights, ahead[done + 1], below)
        run, times = (np.concatenate(both) for both in zip(after, waits, strict=True))
        waits = behind
        if len(run) + len(waits[0]) > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        if not len(run) and not len(waits[0]):
            return below
        run, at, times = told_apart(run, times, way.admitted, width)
    _, times = all_next(run, at, times, may_run(run, way), way)
    ends = times[:, way.admitted + devices :]
    return min(below, int((ends.max(axis=1) if makespan else ends[:, 0]).min(initial=below)))


@njit(cache=True, nogil=True)
def next_before(
    run: Numbers,
    at: Numbers,
    times: Numbers,
    may: Numbers,
    moves: Numbers,
    way: Way,
    together: Numbers,
    weights: Numbers,
    ahead: Ahead,
    below: int,
) -> tuple[Numbers, Numbers]:
    """How far each order has come after each of the moves, and its times, if with what follows they are below a value.

    A move: which way to have come so far, a step, and the gradient in a block with it or `NO`.
    """
    size, found = 2 * len(times) + 1, 0
    after, new = np.empty((size, run.shape[1]), np.int64), np.empty((size, times.shape[1]), np.int64)
    comes, reached, now = np.zeros(way.admitted, np.int64), np.zeros(run.shape[1], np.int64), np.zeros_like(times[0])
    for one, n, g in moves:
        reached[:] = run[one]
        reached[n] += 1
        if g != NO:
            reached[g] += 1
        under_way = comes[: next_steps(reached, comes)]
        follows = ahead.follows[np.searchsorted(ahead.keys, ((reached - reached[-1]) * weights).sum())]
        if found + at[one + 1] - at[one] > size:
            size = 2 * size + at[one + 1] - at[one]
            after, new = _longer(after, size), _longer(new, size)
        for k in range(at[one], at[one + 1]):
            now[:] = times[k]
            if g == NO:
                run_step(now, n, run[one, n] - run[one, -1], may[one, n], way)
            else:
                run_block(now, n, g, run[one], may[one, n], way, together[n, g])
            until_something_comes(now, under_way, reached[0] < way.microbatches, way)
            time = 0
            while time < len(now) and now[time] + follows[time] < below:
                time += 1
            if time == len(now):
                after[found], new[found] = reached, now
                found += 1
    return after[:found].copy(), new[:found].copy()


@njit(cache=True, nogil=True)
def _longer(rows: Numbers, size: int) -> Numbers:
    found = np.empty((size, rows.shape[1]), np.int64)
    found[: len(rows)] = rows
    return found
