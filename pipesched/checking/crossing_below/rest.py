"""How long the rest of an order takes at least, found from the end, for each way to have come so far.

A time of an order is followed by a step that waits for it, and that step by what follows its own end; a block is a step
by which two end. Of all steps and blocks that may be next, for each time the least is taken, so that no order counts as
longer than it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import NO, may_run
from pipesched.checking.finding import NotCoveredError

Small = np.ndarray[Any, np.dtype[np.int32]]

# What follows a time that holds nothing up; what follows where no end can be reached; the most numbers there may be.
_NEVER, FOREVER, _MOST_NUMBERS = -(2**29), 2**29, 60_000_000


class Ahead(NamedTuple):
    """The keys of how far orders may have come, sorted, and what follows each of their times."""

    keys: Numbers
    follows: Small


def what_follows(way: Way, together: Numbers, makespan: bool) -> list[Ahead]:
    """By number of steps that have run."""
    size, left = way.admitted + 2 * len(way.room), _MOST_NUMBERS
    weights = key_weights(way)
    more = np.append(weights[:-1], -weights[:-1].sum())  # by how much each step raises a key
    ways, mays, keys = [np.zeros((1, len(way.ticks)), np.int64)], list[Numbers](), [np.zeros(1, np.int64)]
    waits = ways[0][:0], keys[0][:0]
    for _ in range(way.microbatches * len(way.ticks)):
        mays.append(may_run(ways[-1], way))
        one, n = np.nonzero(mays[-1] > NO)
        first, f, g = np.nonzero(pairs_from(mays[-1], together))
        run, key = _each_once(
            np.concatenate([_with(ways[-1][one], n), waits[0]]), np.concatenate([keys[-1][one] + more[n], waits[1]])
        )
        waits = _with(_with(ways[-1][first], f), g), keys[-1][first] + more[f] + more[g]
        ways.append(run)
        keys.append(key)
        left -= size * len(key)
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    last = np.full((1, size), _NEVER, np.int32)
    counted = way.admitted + len(way.room)
    last[0, counted : None if makespan else counted + 1] = 0
    found = [Ahead(keys[0][:0], last[:0]), Ahead(keys[-1], last)]
    for done in reversed(range(len(mays))):
        follows = one_back(ways[done], mays[done], keys[done], more, found[-1], found[-2], way, together)
        found.append(Ahead(keys[done], follows))
    return found[:0:-1]


def pairs_from(may: Numbers, together: Numbers) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each way to have come so far, whether a forward and a gradient may be next as one block."""
    both = (may[:, :, None] > NO) & (may[:, None, :] > NO)
    return np.asarray(both[:, : len(together)] & (together >= 0))


def _with(run: Numbers, n: Numbers) -> Numbers:
    """How far orders have come when step n has run once more."""
    after = run.copy()
    after[np.arange(len(n)), n] += 1
    return after


def _each_once(run: Numbers, keys: Numbers) -> tuple[Numbers, Numbers]:
    keys, which = np.unique(keys, return_index=True)
    return run[which], keys


def key_weights(way: Way) -> Numbers:
    """What the runs of each step, less those of the last, count in a key."""
    return np.array([(way.admitted + 1) ** n for n in range(len(way.ticks))], np.int64)


@njit(cache=True, nogil=True)
def one_back(
    run: Numbers, may: Numbers, keys: Numbers, more: Numbers, near: Ahead, far: Ahead, way: Way, together: Numbers
) -> Small:
    """What follows the times of orders that are a step shorter than the near ones, or by a block than the far ones."""
    size, steps = near.follows.shape[1], run.shape[1]
    found, now = np.full((len(run), size), FOREVER, np.int32), np.zeros(size, np.int64)
    for one in range(len(run)):
        for n in range(steps):
            if may[one, n] == NO:
                continue
            after = near.follows[np.searchsorted(near.keys, keys[one] + more[n])]
            back_over_step(now, after, n, run[one], may[one, n], way)
            _least(found[one], now)
            for g in range(steps if n < len(together) else 0):
                if together[n, g] >= 0 and may[one, g] > NO:
                    after = far.follows[np.searchsorted(far.keys, keys[one] + more[n] + more[g])]
                    back_over_block(now, after, n, g, run[one], may[one, n], way, together[n, g])
                    _least(found[one], now)
    return found


@njit(cache=True, nogil=True)
def _least(found: Small, now: Numbers) -> None:
    for time in range(len(now)):
        found[time] = max(_NEVER, min(np.int64(found[time]), now[time]))


@njit(cache=True, nogil=True)
def back_over_step(now: Numbers, then: Small, n: int, run: Numbers, may: int, way: Way) -> None:
    """What follows each time, of what follows those when step n has run."""
    free, whole, which = way.admitted, way.admitted + len(way.room), run[n] - run[-1]
    device, back = way.device[n], 1 if n + 1 == len(run) else 0
    ends = np.int64(then[free + device]) if back else max(np.int64(then[free + device]), np.int64(then[which]))
    start = max(way.ticks[n] + ends, way.ticks[n] + way.after[n] + then[whole + device])
    _same_times(now, then, run[0] - run[-1], back, free)
    start = max(start, now[free:].max())  # nothing starts before this step does
    if n > 0:
        now[which] = start + way.before[n]
    now[free + device] = start
    now[whole + device] += way.ticks[n] + way.after[n]
    if may >= 0:
        now[whole + device] = max(now[whole + device], start - may * way.weight[device])


@njit(cache=True, nogil=True)
def back_over_block(now: Numbers, then: Small, n: int, g: int, run: Numbers, may: int, way: Way, ticks: int) -> None:
    """What follows each time, of what follows those when a forward and a gradient have run as one."""
    free, whole, device, back = way.admitted, way.admitted + len(way.room), way.device[n], 1 if g + 1 == len(run) else 0
    forward, gradient = run[n] - run[-1], run[g] - run[-1]
    ends = max(then[free + device], then[whole + device], then[forward - back])
    if not back:
        ends = max(ends, then[gradient])
    _same_times(now, then, run[0] - run[-1], back, free)
    start = max(ticks + ends, now[free:].max())
    if n > 0:
        now[forward] = start + way.before[n]
    now[gradient] = start + way.before[g]
    now[free + device] = start
    now[whole + device] += ticks
    if may >= 0:
        now[whole + device] = max(now[whole + device], start - may * way.weight[device])


@njit(cache=True, nogil=True)
def _same_times(now: Numbers, then: Small, under_way: int, back: int, free: int) -> None:
    """Of times that a step or block leaves as they are; the first micro-batch may have left the row with it."""
    for time in range(free, len(now)):
        now[time] = then[time]
    for time in range(free):
        now[time] = then[time - back] if back <= time < under_way else _NEVER
