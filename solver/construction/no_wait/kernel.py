"""The starts at which a further micro-batch fits between those in flight, compiled, since each search tries many.

The state of a device is a row: the tick at which it is free, its memory in use, the number of weight passes that wait,
and for each of these the tick from which it may start, its ticks and the memory that it frees. Weight passes run in the
order of their backwards, each as soon as the gap before the next pass is long enough. A state is that at the start of
the last micro-batch: weight passes that end later are placed again with each further micro-batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pipesched.compiled import compiled, inlined, inner
from solver.construction.no_wait.block import FREES, OFFSET, TAKES, TICKS, WEIGHT, WEIGHT_FREES

Array = Any  # numpy arrays of int64

# Columns of a device's state; from `QUEUE` on there are `EACH` for each weight pass that waits.
FREE, LEVEL, COUNT, QUEUE, EACH = 0, 1, 2, 3, 3
# Columns of what is found: the start of the micro-batch, and the value of all passes, as in `Block.since`.
START, VALUE, FOUND = 0, 1, 2
_FITS = 0
_NEVER: Any = np.int64(2**62)


@inlined
def _run_weights(own: Array, free: int, level: int, head: int, tail: int, limit: int) -> tuple[int, int, int]:
    """Run the weight passes in `own`, a device's state, from number `head` on, as far as they end by tick `limit`.

    `tail` is the number of weight passes in `own`; `free` is the tick at which the device is free before, `level` its
    memory in use. Returns these two after the weight passes, and the number of the next one; `own` is unchanged.
    """
    while head < tail:
        at = QUEUE + EACH * head
        end = max(free, own[at]) + own[at + 1]
        if end > limit:
            break
        free, level, head = end, level - own[at + 2], head + 1
    return free, level, head


@inlined
def _in_order(rows: Array, at: Array, starts: Array, n: int, start: int, d: int, times: Array, which: Array) -> int:
    """Fill `times` with the start ticks of the passes of device `d` from the last micro-batch's start on.

    Return their number. The starts are sorted, and those of the further micro-batch, which begins at tick `start`, are
    among them. `which` becomes for each the row of its pass in `rows`: k for one of the `n` in flight, which began at
    `starts[:n]`, and -1 - k for the further one. The rows of the device are `at[d]` to `at[d + 1] - 1`.
    """
    count, frontier = 0, starts[n - 1] if n > 0 else 0
    for i in range(n + 1):
        for k in range(at[d], at[d + 1]):
            x = (start if i == n else starts[i]) + rows[k, OFFSET]
            if x >= frontier:
                j = count
                while j > 0 and times[j - 1] > x:
                    times[j], which[j] = times[j - 1], which[j - 1]
                    j -= 1
                times[j], which[j] = x, k if i < n else -1 - k
                count += 1
    return count


@inlined
def _next_freed(rows: Array, times: Array, which: Array, j: int, count: int, own: Array, head: int, tail: int) -> int:
    """Return the least tick at which memory can be freed next, if the further micro-batch begins later; else `_NEVER`.

    That is the end of the weight pass that waits first (number `head` of the `tail` in the device's state `own`), for
    which a later start may leave room at once, or of a backward in flight, number j to `count` - 1 of `which`, or of
    its weight pass if the backward frees nothing. `times` and `which` are as filled by `_in_order`, with the rows of
    `rows`.
    """
    at = QUEUE + EACH * head
    soonest = own[at] + own[at + 1] if head < tail else _NEVER
    for i in range(j, count):
        if which[i] >= 0 and rows[which[i], FREES] > 0:
            soonest = min(soonest, times[i] + rows[which[i], TICKS])
        elif which[i] >= 0 and rows[which[i], WEIGHT_FREES] > 0:
            soonest = min(soonest, times[i] + rows[which[i], TICKS] + rows[which[i], WEIGHT])
    return soonest


@inner
def _place(
    rows: Array,
    at: Array,
    room: Array,
    since: Array,
    state: Array,
    starts: Array,
    n: int,
    start: int,
    step: int,
    after: Array,
    times: Array,
    which: Array,
) -> tuple[int, int]:
    """Place a further micro-batch at tick `start` after the `n` in flight, which began at `starts[:n]`.

    If it fits, returns (0, value), the largest ticks of a device from `since[d]` to the end of its last pass, and
    writes the new state of each device d to `after[d]`. Else returns (ticks by which a later start may fit, at least
    `step`, 0). `rows`, `at`, `room` and `since` are those of `Block`: passes by device, memory (negative: unlimited),
    and the tick from which a device's time counts. `state[d]` is its state before. `times` and `which` have room for
    the passes of a device that are in flight.
    """
    value = 0
    for d in range(at.shape[0] - 1):
        count = _in_order(rows, at, starts, n, start, d, times, which)
        own = after[d]
        for c in range(QUEUE + EACH * state[d, COUNT]):
            own[c] = state[d, c]
        free, level, head, tail = own[FREE], own[LEVEL], 0, own[COUNT]
        kept, last_new = False, start
        for j in range(count + 1):
            x = times[j] if j < count else _NEVER
            if x >= start and not kept:
                kept = True
                free, level, head = _run_weights(own, free, level, head, tail, start)
                for c in range(QUEUE, QUEUE + EACH * (tail - head)):
                    own[c] = own[c + EACH * head]
                head, tail = 0, tail - head
                own[FREE], own[LEVEL], own[COUNT] = free, level, tail
            if j == count:
                break
            free, level, head = _run_weights(own, free, level, head, tail, x)
            new = which[j] < 0
            k = -1 - which[j] if new else which[j]
            if free > x:
                return max(step, free - x if new else x + rows[k, TICKS] - last_new), 0
            if room[d] >= 0 and level + rows[k, TAKES] > room[d]:
                freed = _next_freed(rows, times, which, j, count, own, head, tail)
                return max(step, freed - x if new and freed < _NEVER else step), 0
            free, level = x + rows[k, TICKS], level + rows[k, TAKES] - rows[k, FREES]
            last_new = x if new else last_new
            if rows[k, WEIGHT] > 0:
                waits = QUEUE + EACH * tail
                if waits + EACH > own.shape[0]:
                    return step, 0
                own[waits], own[waits + 1], own[waits + 2] = free, rows[k, WEIGHT], rows[k, WEIGHT_FREES]
                tail += 1
        free, level, head = _run_weights(own, free, level, head, tail, _NEVER)
        value = max(value, free - since[d])
    return _FITS, value


@compiled
def next_starts(
    rows: Array,
    at: Array,
    room: Array,
    since: Array,
    state: Array,
    starts: Array,
    n: int,
    first: int,
    step: int,
    tries: int,
    found: Array,
    after: Array,
    times: Array,
    which: Array,
) -> int:
    """Find starts of a further micro-batch from tick `first` on, as many as `found` has rows.

    They are `step` ticks apart or more. A row of `found` is (start, value of all passes in ticks); `after[i]` has the
    state of each device for row i of `found`. Returns the number of rows filled, after at most `tries` starts. `rows`,
    `at`, `room` and `since` are those of the `Block`, `state` that of each device, and `starts[:n]` the starts of the
    micro-batches in flight. `times` and `which` are working space for the passes of a device.
    """
    number, start = 0, first
    for _ in range(tries):
        later, value = _place(rows, at, room, since, state, starts, n, start, step, after[number], times, which)
        if later == _FITS:
            found[number, START], found[number, VALUE] = start, value
            number += 1
            if number == found.shape[0]:
                break
            later = step
        start += later
    return number
