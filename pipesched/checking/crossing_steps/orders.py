"""All orders of the steps of a chain on some devices, tried by dynamic programming, compiled.

An order that has come some way is told by how many micro-batches have run each step, and by times: when the last step
of each micro-batch that is under way ended, when each device can start the next, and when it would have run all that it
could, weight passes too. Those times stand in a row one behind the other.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pipesched.checking.crossing_steps.argument import Numbers, Way
from pipesched.checking.crossing_steps.repetition import AFTER, Reached, repeated
from pipesched.checking.finding import NotCoveredError

# Rows of times beyond which the check would take minutes, and at once, gigabytes.
MOST_ROWS, MOST_AT_ONCE = 150_000_000, 4_000_000
NO, _ANY, _LATE = -2, -1, 2**62


def least_end(way: Way, width: int, makespan: bool, begun: tuple[Reached, int] | None = None) -> int:
    """When the first device has run all at the earliest; for the makespan every device.

    Orders may have `begun`, with so many steps run.
    """
    steps, devices = len(way.ticks), len(way.room)
    reached, done = begun or (nothing_run(steps, way.admitted + 2 * devices), 0)
    rounds, rows = list[Reached](), 0
    while done + 1 < way.microbatches * steps:
        may = may_run(reached.run, way)
        size = int((np.diff(reached.at) * (may > NO).sum(axis=1)).sum())
        rows, done = rows + size, done + 1
        if not size or size > MOST_AT_ONCE or rows > MOST_ROWS:
            raise NotCoveredError("too many orders to try them all")
        after, times = all_next(reached.run, reached.at, reached.times, may, way)
        reached = told_apart(after, times, way.admitted, width)
        if done % steps == 0 and len(rounds) < AFTER:
            rounds.append(reached)
            if len(rounds) == AFTER:
                skipped, later = repeated(rounds, way.admitted, way.microbatches - done // steps - way.admitted - 1)
                reached, done = (
                    reached._replace(run=reached.run + skipped, times=reached.times + later),
                    done + skipped * steps,
                )
    _, times = all_next(reached.run, reached.at, reached.times, may_run(reached.run, way), way)
    ends = times[:, way.admitted + devices :]
    return int((ends.max(axis=1) if makespan else ends[:, 0]).min())


def nothing_run(steps: int, times: int) -> Reached:
    """Before the first step, with so many times of the one order that there is."""
    return Reached(np.zeros((1, steps), np.int64), np.array([0, 1]), np.zeros((1, times), np.int64))


def told_apart(run: Numbers, times: Numbers, admitted: int, width: int) -> Reached:
    """Orders that have come equally far side by side, and of their times those that are told apart."""
    keys = (run - run[:, -1:]) @ np.array([(admitted + 1) ** n for n in range(run.shape[1])], np.int64)
    order = np.lexsort((times.sum(axis=1), keys))
    at = np.flatnonzero(np.diff(keys[order], prepend=-1))
    counts, kept = fewer(times[order], np.append(at, len(keys)), width)
    return Reached(run[order[at]], np.append(0, np.cumsum(counts)), kept)


@njit(cache=True, nogil=True)
def may_run(run: Numbers, way: Way) -> Numbers:
    """For each way to have come so far and each step: how many weight passes may be open when it starts.

    -1 for any number, -2 where it cannot be next. Of those that memory lets start now, but which would leave no room
    for the forwards of a micro-batch before them, no end can be reached.
    """
    found = np.full(run.shape, NO, np.int64)
    steps = run.shape[1]
    for one in range(len(run)):
        for n in range(steps):
            ahead = min(way.microbatches, run[one, -1] + way.admitted) if n == 0 else run[one, n - 1]
            if run[one, n] < ahead:
                found[one, n] = _room_left(run[one], n, way)
    return found


@njit(cache=True, nogil=True)
def _room_left(run: Numbers, n: int, way: Way) -> int:
    device = way.device[n]
    if way.memory[n] <= 0 or way.room[device] < 0:
        return _ANY
    held, behind, whole, oldest = way.memory[n], way.memory[n], 0, 0
    for other in range(len(run) // 2):
        if way.device[other] == device:
            whole += way.memory[other]
            oldest = run[other]  # in the end: the first micro-batch that has forwards left here
    for other in range(len(run)):
        if way.device[other] == device:
            held += way.memory[other] * run[other]
            behind += way.memory[other] * max(0, run[other] - oldest - 1)
    if held > way.room[device] or (oldest < run[n] and behind + whole > way.room[device]):
        return NO
    return int((way.room[device] - held) // way.open_[device]) if way.open_[device] > 0 else _ANY


@njit(cache=True, nogil=True)
def all_next(run: Numbers, at: Numbers, times: Numbers, may: Numbers, way: Way) -> tuple[Numbers, Numbers]:
    """How far each order has come after each step that may be next, and its times."""
    steps, size = run.shape[1], 0
    for one in range(len(run)):
        size += (at[one + 1] - at[one]) * (may[one] > NO).sum()
    after, new = np.empty((size, steps), np.int64), np.empty((size, times.shape[1]), np.int64)
    found, comes, reached = 0, np.zeros(way.admitted, np.int64), np.zeros(steps, np.int64)
    for one in range(len(run)):
        for n in range(steps):
            if may[one, n] > NO:
                reached[:] = run[one]
                reached[n] += 1
                under_way = next_steps(reached, comes)
                for k in range(at[one], at[one + 1]):
                    after[found] = reached
                    new[found] = times[k]
                    run_step(new[found], n, run[one, n] - run[one, -1], may[one, n], way)
                    until_something_comes(new[found], comes[:under_way], reached[0] < way.microbatches, way)
                    found += 1
    return after, new


@njit(cache=True, nogil=True)
def next_steps(run: Numbers, comes: Numbers) -> int:
    """Fill in the next step of each micro-batch that is under way, the first one first; how many these are."""
    under_way = run[0] - run[-1]
    for which in range(under_way):
        n = 0
        while run[n] > run[-1] + which:
            n += 1
        comes[which] = n
    return int(under_way)


@njit(cache=True, nogil=True)
def run_step(times: Numbers, n: int, which: int, may: int, way: Way) -> None:
    """The times when step n of that micro-batch has run; steps are taken by their starts, so no other starts before."""
    devices, one = len(way.room), way.device[n]
    free, whole = way.admitted, way.admitted + devices
    start = times[free + one]
    if n > 0:
        start = max(start, times[which] + way.before[n])
    if may >= 0:
        start = max(start, times[whole + one] - may * way.weight[one])
    for place in range(free, len(times)):
        times[place] = max(times[place], start)
    times[which] = times[free + one] = start + way.ticks[n]
    times[whole + one] += way.ticks[n] + way.after[n]
    if n + 1 == len(way.ticks):  # the first one is back
        for place in range(free - 1):
            times[place] = times[place + 1]
        times[free - 1] = 0


@njit(cache=True, nogil=True)
def until_something_comes(times: Numbers, comes: Numbers, more: bool, way: Way) -> None:
    """Change times to the latest with which nothing that is left runs later."""
    devices, free = len(way.room), way.admitted
    wait_for_each_other(times, comes, more, way)
    for one in range(devices):
        times[free + devices + one] = max(times[free + devices + one], times[free + one])


@njit(cache=True, nogil=True)
def wait_for_each_other(times: Numbers, comes: Numbers, more: bool, way: Way) -> None:
    """Change times of steps alone to the latest with which no step that is left runs later.

    A micro-batch waits for its next device, and a device for what comes to it first: of those under way, or one more.
    """
    devices, free = len(way.room), way.admitted
    for which, n in enumerate(comes):
        times[which] = max(times[which], times[free + way.device[n]] - way.before[n])
    for one in range(devices):
        first = times[free] + way.soonest[0, one] if more else _LATE
        for which, n in enumerate(comes):
            if way.soonest[n, one] >= 0:
                first = min(first, times[which] + way.soonest[n, one])
        if first < _LATE:
            times[free + one] = max(times[free + one], first)


@njit(cache=True, nogil=True)
def fewer(times: Numbers, at: Numbers, width: int) -> tuple[Numbers, Numbers]:
    """Of times that belong together those that are told apart, and how many these are; they come with least sums first.

    What is in no time earlier than another is left out. Of what remains the first ones stay, by sums, then as words are
    sorted; each further one makes that of them earlier which it is earlier than by the least.
    """
    kept, counts, total = np.empty_like(times), np.zeros(len(at) - 1, np.int64), 0
    for group in range(len(at) - 1):
        since = total
        for n in range(at[group], at[group + 1]):
            if not _one_before(kept, since, total, times[n]):
                place = total
                while place > since and _sorted_before(times[n], kept[place - 1]):
                    kept[place] = kept[place - 1]
                    place -= 1
                kept[place] = times[n]
                total += 1
        stay = kept[since : min(total, since + width)].copy()
        for n in range(since + len(stay), total):
            _make_earlier(kept[since : since + len(stay)], stay, kept[n])
        total = since + len(stay)
        counts[group] = len(stay)
    return counts, kept[:total].copy()


@njit(cache=True, nogil=True)
def _one_before(kept: Numbers, since: int, total: int, times: Numbers) -> bool:
    """Whether something that is kept is in no time later."""
    for one in range(since, total):
        n = 0
        while n < len(times) and kept[one, n] <= times[n]:
            n += 1
        if n == len(times):
            return True
    return False


@njit(cache=True, nogil=True)
def _make_earlier(kept: Numbers, stay: Numbers, times: Numbers) -> None:
    nearest, least = 0, np.int64(_LATE)
    for n in range(len(stay)):
        differ = np.int64(0)
        for place in range(len(times)):
            differ += max(0, stay[n, place] - times[place])
        if differ < least:
            nearest, least = n, differ
    for place in range(len(times)):
        kept[nearest, place] = min(kept[nearest, place], times[place])


@njit(cache=True, nogil=True)
def _sorted_before(one: Numbers, other: Numbers) -> bool:
    """Whether times of the same sum come first as words would; those of another sum stay where they are."""
    if one.sum() != other.sum():
        return False
    for a, b in zip(one, other):  # noqa: B905 - Numba knows no strict
        if a != b:
            return bool(a < b)
    return False
