"""All orders of steps with whole weight passes that may end below a value, tried forwards.

Times of an order stand in a row: when the last step of each micro-batch under way ended; when each device can start the
next step; when it has run all steps and weight passes so far. Then how many weight passes are open, by device and
length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_below.rest import FOREVER, Ahead, key_weights, what_follows
from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import NO, may_run, next_steps
from pipesched.checking.crossing_whole.device import Open, all_over, come_to, in_front, open_of, ready_for
from pipesched.checking.crossing_whole.fewer import first_ones
from pipesched.checking.finding import NotCoveredError

# Rows of times that are looked at in all, that stay, and of one way to have come so far: beyond, it takes minutes.
_MOST, _MOST_AT_ONCE, _MOST_ALIKE = 60_000_000, 100_000, 5_000


def least_end_of_whole(way: Way, together: Numbers, makespan: bool, below: int) -> int:
    """The least end of the orders that may end below the value, or the value if that is less."""
    devices, opened = len(way.room), open_of(way)
    if way.microbatches * int(way.ticks.sum() + way.after.sum() + way.before.sum()) >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    ahead = what_follows(way, together, makespan)
    run, at, looked = np.zeros((1, len(way.ticks)), np.int64), np.array([0, 1]), 0
    times = np.zeros((1, way.admitted + 2 * devices + len(opened.ticks)), np.int64)
    for done in range(way.microbatches * len(way.ticks)):
        after, times, seen = all_next_whole(run, at, times, may_run(run, way), way, opened, ahead[done + 1], below)
        looked += seen
        if looked > _MOST:
            raise NotCoveredError("too many orders to try them all")
        if not len(after):
            return below
        keys = (after - after[:, -1:]) @ key_weights(way)
        order = np.argsort(keys, kind="stable")
        groups = np.flatnonzero(np.diff(keys[order], prepend=-1))
        counts, times = first_ones(times[order], np.append(groups, len(keys)), way, opened, _MOST_ALIKE)
        if len(counts) < len(groups) or len(times) > _MOST_AT_ONCE:
            raise NotCoveredError("too many orders to try them all")
        run, at = after[order[groups]], np.append(0, np.cumsum(counts))
    ends = [max(all_over(row, d, way, opened) for d in range(devices if makespan else 1)) for row in times]
    return min(below, *ends)


@njit(cache=True, nogil=True)
def all_next_whole(
    run: Numbers, at: Numbers, times: Numbers, may: Numbers, way: Way, opened: Open, ahead: Ahead, below: int
) -> tuple[Numbers, Numbers, int]:
    """How far orders have come after one step more, and their times, of those in time; how many were looked at."""
    steps, kinds, found, seen = run.shape[1], len(opened.ticks), 0, 0
    after, new = np.empty((1000, steps), np.int64), np.empty((1000, times.shape[1]), np.int64)
    comes, reached, chosen = np.zeros(way.admitted, np.int64), np.zeros(steps, np.int64), np.zeros(kinds, np.int64)
    for one in range(len(run)):
        for n in range(steps):
            if may[one, n] == NO:
                continue
            reached[:] = run[one]
            reached[n] += 1
            under_way, which, key = next_steps(reached, comes), run[one, n] - run[one, -1], np.int64(0)
            for step in range(steps):
                key += (reached[step] - reached[-1]) * (way.admitted + 1) ** step
            follows = ahead.follows[np.searchsorted(ahead.keys, key)]
            for k in range(at[one], at[one + 1]):
                ready, choices = ready_for(times[k], n, which, way), np.int64(1)
                for kind in range(opened.first[way.device[n]], opened.first[way.device[n] + 1]):
                    choices *= times[k, len(times[k]) - kinds + kind] + 1
                for choice in range(choices):
                    if not in_front(chosen, choice, times[k], n, ready, may[one, n], way, opened):
                        continue
                    if found == len(new):
                        after, new = np.concatenate((after, after)), np.concatenate((new, new))
                    after[found], new[found], seen = reached, times[k], seen + 1
                    _run(new[found], chosen, n, which, ready, may[one, n], way, opened)
                    come_to(new[found], comes[:under_way], reached[0] < way.microbatches, way, opened)
                    if _in_time(new[found], follows, below, way, opened):
                        found += 1
    return after[:found].copy(), new[:found].copy(), seen


@njit(cache=True, nogil=True)
def _run(times: Numbers, chosen: Numbers, n: int, which: int, ready: int, may: int, way: Way, opened: Open) -> None:
    """The times when some weight passes and then step n of a micro-batch have run; no other starts before that step."""
    devices, one, free = len(way.room), way.device[n], way.admitted
    over, open_ = free + devices + one, free + 2 * devices
    for kind in range(opened.first[one], opened.first[one + 1]):
        times[over] += chosen[kind] * opened.ticks[kind]
        times[open_ + kind] -= chosen[kind]
    breaks = opened.first[one] == opened.first[one + 1]
    # With breaks all has run that may not be open then.
    start = ready
    if not breaks:
        start = max(ready, times[over])
    elif may >= 0:
        start = max(ready, times[over] - may * way.weight[one])
    for device in range(devices):
        times[free + device] = max(times[free + device], start)
    times[which] = times[free + one] = start + way.ticks[n]
    times[over] = max(times[over], start) + way.ticks[n] + way.after[n] if breaks else times[which]
    if opened.kind[n] >= 0:
        times[open_ + opened.kind[n]] += 1
    if n + 1 == len(way.ticks):  # the first one is back
        for place in range(free - 1):
            times[place] = times[place + 1]
        times[free - 1] = 0


@njit(cache=True, nogil=True)
def _in_time(times: Numbers, follows: Numbers, below: int, way: Way, opened: Open) -> bool:
    """Whether times, with what follows each of them, are before the value."""
    counted = way.admitted + len(way.room)
    for time in range(counted):
        if times[time] + follows[time] >= below:
            return False
    for one in range(len(way.room)):  # noqa: SIM110 - Numba compiles no generator
        if all_over(times, one, way, opened) + follows[counted + one] >= below:
            return False
    return True
