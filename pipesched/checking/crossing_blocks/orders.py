"""All orders of a chain's steps on some devices, with all blocks of two, by dynamic programming, compiled."""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import (
    MOST_AT_ONCE,
    MOST_ROWS,
    NO,
    all_next,
    may_run,
    next_steps,
    told_apart,
    until_something_comes,
)
from pipesched.checking.crossing_steps.repetition import Reached
from pipesched.checking.finding import NotCoveredError


def least_end_with_blocks(way: Way, together: Numbers, width: int, makespan: bool) -> int:
    """When the first device has run all at the earliest; for the makespan every device.

    What a block leads to has come two steps further, so it waits until the others have come as far.
    """
    steps, columns = len(way.ticks), way.admitted + 2 * len(way.room)
    reached = Reached(np.zeros((1, steps), np.int64), np.array([0, 1]), np.zeros((1, columns), np.int64))
    waits, rows = (np.empty((0, steps), np.int64), np.empty((0, columns), np.int64)), 0
    for _ in range(way.microbatches * steps - 1):
        may = may_run(reached.run, way)
        pairs = ((may[:, :, None] > NO) & (may[:, None, :] > NO))[:, : len(together)] & (together >= 0)
        size = int((np.diff(reached.at) * ((may > NO).sum(axis=1) + pairs.sum(axis=(1, 2)))).sum()) + len(waits[0])
        rows += size
        if not size or size > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        run, times = all_next(reached.run, reached.at, reached.times, may, way)
        behind = all_next_blocks(reached.run, reached.at, reached.times, may, pairs.astype(np.int64), way, together)
        reached = told_apart(np.concatenate([run, waits[0]]), np.concatenate([times, waits[1]]), way.admitted, width)
        waits = behind
    _, times = all_next(reached.run, reached.at, reached.times, may_run(reached.run, way), way)
    ends = times[:, way.admitted + len(way.room) :]
    return int((ends.max(axis=1) if makespan else ends[:, 0]).min())


@njit(cache=True, nogil=True)
def all_next_blocks(
    run: Numbers, at: Numbers, times: Numbers, may: Numbers, pairs: Numbers, way: Way, together: Numbers
) -> tuple[Numbers, Numbers]:
    """How far each order has come after each block that may be next, and its times."""
    steps, size = run.shape[1], 0
    for one in range(len(run)):
        size += (at[one + 1] - at[one]) * pairs[one].sum()
    after, new = np.empty((size, steps), np.int64), np.empty((size, times.shape[1]), np.int64)
    found, comes, reached = 0, np.zeros(way.admitted, np.int64), np.zeros(steps, np.int64)
    for one in range(len(run)):
        for n in range(len(together)):
            for g in range(steps):
                if pairs[one, n, g]:
                    reached[:] = run[one]
                    reached[n] += 1
                    reached[g] += 1
                    under_way = next_steps(reached, comes)
                    for k in range(at[one], at[one + 1]):
                        after[found] = reached
                        new[found] = times[k]
                        run_block(new[found], n, g, run[one], may[one, n], way, together[n, g])
                        until_something_comes(new[found], comes[:under_way], reached[0] < way.microbatches, way)
                        found += 1
    return after, new


@njit(cache=True, nogil=True)
def run_block(times: Numbers, n: int, g: int, run: Numbers, may: int, way: Way, ticks: int) -> None:
    """The times when a forward and a gradient have run as one: both wait for each other, and end together."""
    devices, one, forward, gradient = len(way.room), way.device[n], run[n] - run[-1], run[g] - run[-1]
    free, whole = way.admitted, way.admitted + devices
    start = max(times[free + one], times[gradient] + way.before[g])
    if n > 0:
        start = max(start, times[forward] + way.before[n])
    if may >= 0:
        start = max(start, times[whole + one] - may * way.weight[one])
    for place in range(free, len(times)):
        times[place] = max(times[place], start)
    times[forward] = times[gradient] = times[free + one] = start + ticks
    times[whole + one] += ticks
    if g + 1 == len(way.ticks):  # the first one is back
        for place in range(free - 1):
            times[place] = times[place + 1]
        times[free - 1] = 0
