"""All orders of the steps of all chains on some devices, with all blocks of two, by dynamic programming, compiled.

An order is told by how many micro-batches have run each step, and by times: for each chain when the last step of each
micro-batch under way ended, then when each device can start the next step, and when it would have run all that it
could, weight passes too. Steps are taken by their starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pipesched.checking.crossing_chains.alone import Alone, Points, alone_on, has_a_way_on, key_weights
from pipesched.checking.crossing_chains.times import LATE, ends_before, left_on, run_step, until_something_comes
from pipesched.checking.crossing_chains.ways import NO_STEP, Ways
from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.walk import Numbers
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled

# Orders of one device by itself that are kept distinct where they have come equally far.
_WIDTH_ALONE = 512
# Rows of times beyond which the check would take minutes, and at once, gigabytes.
_MOST_ROWS, _MOST_AT_ONCE = 100_000_000, 4_000_000
_NO, _ANY = -2, -1


def least_end_on_several(ways: Ways, each: Sequence[Ways], width: int, below: int) -> int:
    """The same, without orders of which one of the devices says by itself that they cannot end below the value."""
    say = list[Alone]()
    for number, own in enumerate(each):
        points: Points = []
        least_end_of_all(own, _WIDTH_ALONE, below, points=points)
        say.append(alone_on(number, ways, own, points, below))
    return least_end_of_all(ways, width, below, say)


def least_end_of_all(
    ways: Ways, width: int, below: int, say: Sequence[Alone] = (), points: Points | None = None
) -> int:
    """When every device has run all, and every micro-batch is done, at the earliest; no more than the value.

    Or when the owner has run all, where only its time counts. Notes the points to which orders come, with the earliest
    of each time there.
    """
    steps, weights = len(ways.ticks), key_weights(ways)
    run, at = np.zeros((1, steps), np.int64), np.array([0, 1])
    times = np.zeros((1, ways.columns + 2 * len(ways.room)), np.int64)
    times[:, ways.columns :] = ways.past
    waits, least, rows = (run[:0], times[:0]), below, 0
    while len(run) or len(waits[0]):
        may = may_come(run, ways)
        if points is not None and len(run):
            points.append((run, np.minimum.reduceat(times, at[:-1], axis=0), may))
        size = int((np.diff(at) * _choices(may, ways)).sum()) + len(waits[0])
        rows += size
        if size > _MOST_AT_ONCE or rows > _MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        after, new, block, end = all_longer(run, at, times, may, ways, below, size)
        least = min(least, int(end))
        for alone in say:
            stay = has_a_way_on(after, new, ways, alone, below)
            after, new, block = after[stay], new[stay], block[stay]
        now, new_times = np.concatenate([after[~block], waits[0]]), np.concatenate([new[~block], waits[1]])
        waits = after[block], new[block]
        keys = now @ weights
        order = np.argsort(keys, kind="stable")
        since = np.flatnonzero(np.diff(keys[order], prepend=-1))
        counts, times = told_apart(new_times, order, np.append(since, len(keys)), width)
        run, at = now[order[since]], np.append(0, np.cumsum(counts))
    return least


def _choices(may: Numbers, ways: Ways) -> Numbers:
    """How many steps and blocks may be next."""
    found: Numbers = (may > _NO).sum(axis=1)
    for n, g in zip(*np.nonzero(ways.together >= 0), strict=True):
        found = found + ((may[:, n] > _NO) & (may[:, g] > _NO))
    return found


@compiled
def may_come(run: Numbers, ways: Ways) -> Numbers:
    """For each order and step: how many weight passes may be open when it starts, -1 for any, -2 where it cannot be."""
    found = np.full(run.shape, _NO, np.int64)
    for one in range(len(run)):
        for n in range(run.shape[1]):
            ahead = ways.number[n] if ways.earlier[n] == NO_STEP else run[one, ways.earlier[n]]
            device = ways.device[n]
            if run[one, n] == ahead:
                continue
            found[one, n] = _ANY
            if ways.memory[n] > 0 and ways.room[device] >= 0:
                held = ways.memory[n]
                for other in range(run.shape[1]):
                    if ways.device[other] == device:
                        held += ways.memory[other] * run[one, other]
                if held > ways.room[device]:
                    found[one, n] = _NO
                elif ways.open_[device] > 0:
                    found[one, n] = (ways.room[device] - held) // ways.open_[device]
    return found


@compiled
def all_longer(
    run: Numbers, at: Numbers, times: Numbers, may: Numbers, ways: Ways, below: int, size: int
) -> tuple[Numbers, Numbers, np.ndarray[Any, np.dtype[np.bool_]], int]:
    """How far orders have come after each step or block that may be next, their times, and which were blocks.

    Without those that cannot end below the value; last the least end of those that have run all.
    """
    steps = run.shape[1]
    after, new = np.empty((size, steps), np.int64), np.empty((size, times.shape[1]), np.int64)
    block, found, least = np.zeros(size, np.bool_), 0, np.int64(LATE)
    for one in range(len(run)):
        for n in range(steps):
            for g in range(-1, steps):
                if may[one, n] == _NO or (g >= 0 and (ways.together[n, g] < 0 or may[one, g] == _NO)):
                    continue
                for k in range(at[one], at[one + 1]):
                    now = new[found]
                    now[:] = times[k]
                    done = run_step(now, n, g, run[one], may[one, n], ways)
                    after[found] = run[one]
                    after[found, n] += 1
                    if g >= 0:
                        after[found, g] += 1
                    if ways.owner >= 0 and left_on(ways.owner, after[found], ways) == 0:
                        least = min(least, now[ways.columns + len(ways.room) + ways.owner])
                    elif ways.owner < 0 and (after[found] == ways.number).all():
                        least = min(least, max(np.int64(done), now[ways.columns + len(ways.room) :].max()))
                    elif done < below:
                        until_something_comes(now, after[found], ways)
                        if ends_before(now, after[found], ways, below):
                            block[found] = g >= 0
                            found += 1
    return after[:found], new[:found], block[:found], int(least)
