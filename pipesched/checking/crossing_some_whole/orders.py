"""The first steps of all orders, with whole weight passes on some devices; then what is open counts as work to do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.checking.crossing_below.rest import Ahead, key_weights
from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.orders import NO, fewer, may_run, nothing_run, told_apart
from pipesched.checking.crossing_steps.repetition import Reached
from pipesched.checking.crossing_whole.device import Open, open_of
from pipesched.checking.crossing_whole.fewer import first_ones
from pipesched.checking.crossing_whole.orders import all_next_whole
from pipesched.checking.finding import NotCoveredError

# Rows of times that are looked at in all, and of one way to have come so far: beyond, it takes minutes.
_MOST, _MOST_ALIKE = 60_000_000, 20_000
# A time that is before any other, and one that is behind all.
_LONG_AGO, _FAR = -(2**29), 2**62


def begun_with_whole(way: Way, whole: Sequence[int], many: int, width: int) -> Reached:
    """How far orders have come after so many steps, and their times; `whole` are numbers of devices of the way."""
    opened, looked = open_of(way, whole), 0
    reached = nothing_run(len(way.ticks), way.admitted + 2 * len(way.room) + len(opened.ticks))
    for _ in range(many):
        reached, seen = _one_more(reached, way, opened, width)
        looked += seen
        if looked > _MOST:
            raise NotCoveredError("too many orders to try them all")
    run = np.repeat(reached.run, np.diff(reached.at), axis=0)
    return told_apart(run, with_breaks(reached.times, way, opened), way.admitted, width)


def _one_more(reached: Reached, way: Way, opened: Open, width: int) -> tuple[Reached, int]:
    """After one step more, those told apart; how many were looked at."""
    run, at, times = reached
    may = may_run(run, way)
    one, n = np.nonzero(may > NO)
    next_ones = run[one]
    next_ones[np.arange(len(n)), n] += 1
    known = np.unique((next_ones - next_ones[:, -1:]) @ key_weights(way))
    # None is left out for what follows it.
    ahead = Ahead(known, np.full((len(known), way.admitted + 2 * len(way.room)), _LONG_AGO, np.int32))
    after, times, seen = all_next_whole(run, at, times, may, way, opened, ahead, _FAR)
    if not len(after):
        raise NotCoveredError("no order has so many steps")
    keys = (after - after[:, -1:]) @ key_weights(way)
    order = np.argsort(keys, kind="stable")
    groups = np.flatnonzero(np.diff(keys[order], prepend=-1))
    counts, times = first_ones(times[order], np.append(groups, len(keys)), way, opened, _MOST_ALIKE)
    if len(counts) < len(groups):
        raise NotCoveredError("too many orders to try them all")
    run, at = after[order[groups]], np.append(0, np.cumsum(counts))
    if counts.max() > width:
        counts, times = _near_ones_as_one(times, at, width)
        at = np.append(0, np.cumsum(counts))
    return Reached(run, at, times), seen


def _near_ones_as_one(times: Numbers, at: Numbers, width: int) -> tuple[Numbers, Numbers]:
    """How many of each group are told apart, and their times: the least of all numbers of those that are not."""
    groups = np.repeat(np.arange(len(at) - 1), np.diff(at))
    return fewer(times[np.lexsort((times.sum(axis=1), groups))], at, width)


def with_breaks(times: Numbers, way: Way, opened: Open) -> Numbers:
    """The times where weight passes may be broken off: when each device would have run what is open too."""
    devices, places = len(way.room), way.admitted + 2 * len(way.room)
    found = times[:, :places].copy()
    for one in range(devices):
        for kind in range(opened.first[one], opened.first[one + 1]):
            found[:, places - devices + one] += times[:, places + kind] * opened.ticks[kind]
    found[:, places - devices :] = np.maximum(found[:, places - devices :], found[:, way.admitted : places - devices])
    return found
