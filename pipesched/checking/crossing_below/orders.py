"""Orders, with blocks, that may end below a value, tried forwards.

The times of an order are those of crossings with blocks. The end is the latest of them, each with what must follow it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_below.apart import told_apart_by_key
from pipesched.checking.crossing_below.rest import (
    FOREVER,
    Ahead,
    Small,
    back_over_block,
    back_over_step,
    key_weights,
    pairs_from,
    what_follows,
)
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
    until_something_comes,
)
from pipesched.checking.finding import NotCoveredError


def least_end_below(way: Way, together: Numbers, width: int, makespan: bool, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    steps, devices = len(way.ticks), len(way.room)
    longest = int(way.ticks.sum() + way.after.sum() + way.before.sum() + together.max(axis=1).clip(0).sum())
    if way.microbatches * longest >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    ahead, rows = what_follows(way, together, makespan), 0
    run, at, times = (
        np.zeros((1, steps), np.int64),
        np.array([0, 1]),
        np.zeros((1, way.admitted + 2 * devices), np.int32),
    )
    waits = np.empty(0, np.int64), times[:0]
    for done in range(1, way.microbatches * steps):
        may = may_run(run, way)
        pairs = pairs_from(may, together)
        rows += int((np.diff(at) * ((may > NO).sum(axis=1) + pairs.sum(axis=(1, 2)))).sum())
        # A step and none, or a forward and a gradient.
        alone, blocks = np.argwhere(may > NO), np.argwhere(pairs)
        alone = np.column_stack([alone, np.full(len(alone), NO)])
        after = next_before(run, at, times, may, alone, way, together, key_weights(way), ahead[done], below)
        behind = next_before(run, at, times, may, blocks, way, together, key_weights(way), ahead[done + 1], below)
        keys, times = np.concatenate([after[0], waits[0]]), np.concatenate([after[1], waits[1]])
        waits = behind
        if len(keys) + len(waits[0]) > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        if not len(keys) and not len(waits[0]):
            return below
        keys, at, times = told_apart_by_key(keys, times, width)
        run = _runs(keys, done, way)
    _, ends = all_next(run, at, times.astype(np.int64), may_run(run, way), way)
    ends = ends[:, way.admitted + devices :]
    return min(below, int((ends.max(axis=1) if makespan else ends[:, 0]).min(initial=below)))


def _runs(keys: Numbers, done: int, way: Way) -> Numbers:
    """How far orders have come whose keys these are, with so many steps run in all."""
    run = keys[:, None] // key_weights(way) % (way.admitted + 1)
    return np.asarray(run + (done - run.sum(axis=1, keepdims=True)) // len(way.ticks))


@njit(cache=True, nogil=True)
def next_before(
    run: Numbers,
    at: Numbers,
    times: Small,
    may: Numbers,
    moves: Numbers,
    way: Way,
    together: Numbers,
    weights: Numbers,
    ahead: Ahead,
    below: int,
) -> tuple[Numbers, Small]:
    """The key of each order after each of the moves, and its times, if with what follows they are below a value.

    A move: which way to have come so far, a step, and the gradient in a block with it or `NO`.
    """
    size, found = 2 * len(times) + 1, 0
    keys, new = np.empty(size, np.int64), np.empty((size, times.shape[1]), np.int32)
    comes, reached, now = (
        np.zeros(way.admitted, np.int64),
        np.zeros(run.shape[1], np.int64),
        np.zeros(times.shape[1], np.int64),
    )
    for one, n, g in moves:
        reached[:] = run[one]
        reached[n] += 1
        if g != NO:
            reached[g] += 1
        under_way, key = comes[: next_steps(reached, comes)], ((reached - reached[-1]) * weights).sum()
        follows = ahead.follows[np.searchsorted(ahead.keys, key)]
        # What follows the times before the move: most orders are left out without one.
        if g == NO:
            back_over_step(now, follows, n, run[one], may[one, n], way)
        else:
            back_over_block(now, follows, n, g, run[one], may[one, n], way, together[n, g])
        if found + at[one + 1] - at[one] > size:
            size = 2 * size + at[one + 1] - at[one]
            keys, new = _longer(keys, new, size)
        for k in range(at[one], at[one + 1]):
            if not _all_below(times[k], now, below):
                continue
            new[found] = times[k]
            if g == NO:
                run_step(new[found], n, run[one, n] - run[one, -1], may[one, n], way)
            else:
                run_block(new[found], n, g, run[one], may[one, n], way, together[n, g])
            until_something_comes(new[found], under_way, reached[0] < way.microbatches, way)
            if _all_below(new[found], follows, below):
                keys[found] = key
                found += 1
    return keys[:found].copy(), new[:found].copy()


@njit(cache=True, nogil=True)
def _all_below(times: Small, follows: Numbers, below: int) -> bool:
    """Whether each time and what follows it come to less than the value."""
    for time in range(len(times)):  # noqa: SIM110 - Numba compiles no generator
        if times[time] + follows[time] >= below:
            return False
    return True


@njit(cache=True, nogil=True)
def _longer(keys: Numbers, rows: Small, size: int) -> tuple[Numbers, Small]:
    more_keys, more = np.empty(size, np.int64), np.empty((size, rows.shape[1]), np.int32)
    more_keys[: len(keys)], more[: len(rows)] = keys, rows
    return more_keys, more
