"""All orders of one device, for the exhaustive search: compiled.

Passes are numbers. A slot is a pass, or two that run as one block: `n + n * f + b` for passes f and b of n. Paths that
do not exist are `NO_PATH` long, so that adding to them leaves them below every time there is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

NO_PATH = -(2**40)
# Slots that are tried for the orders of one device at most.
MOST_STEPS = 1_000_000

Numbers = Any


@njit(cache=True)
def longest_paths(ticks: Numbers, needs: Numbers, lags: Numbers) -> Numbers:
    """From the start of each pass to the start of each other, when all run as soon as they can; passes are in order."""
    n = len(ticks)
    paths = np.full((n, n), NO_PATH)
    for q in range(n):
        paths[q, q] = 0
        for k in range(needs.shape[1]):
            r = needs[q, k]
            if r >= 0:
                for p in range(n):
                    if paths[p, r] >= 0:
                        paths[p, q] = max(paths[p, q], paths[p, r] + ticks[r] + lags[q, k])
    return paths


@njit(cache=True)
def _whole(here: Numbers, least: Numbers, block: Numbers, paths: Numbers) -> tuple[int, int, Numbers]:
    """All passes of a device as bits, what they take at least, and how long after each start all can end."""
    every, rest = 0, 0
    after = np.zeros(len(least), np.int64)
    for p in here:
        every |= 1 << p
        rest += least[p] if block[p] != -2 else 0
        for q in here:
            after[p] = max(after[p], paths[p, q] + least[q])
    return every, rest, after


@njit(inline="always")
def _may_run(p: int, q: int, ran: int, before: Numbers, block: Numbers) -> bool:
    """Whether p, in a block with q unless that is -1, may follow those that ran."""
    if ran >> p & 1 or before[p] & ~ran:
        return False
    return q < 0 or (block[p] >= 0 and block[q] == -2 and not ran >> q & 1 and not before[q] & ~ran)


@njit(inline="always")
def _earliest(p: int, q: int, ran: int, here: Numbers, start: Numbers, paths: Numbers, at_least: int) -> int:
    """When p, in a block with q unless that is -1, can start behind those that ran."""
    begin = at_least
    for r in here:
        if ran >> r & 1:
            begin = max(begin, start[r] + paths[r, p])
            if q >= 0:
                begin = max(begin, start[r] + paths[r, q])
    return begin


@njit(inline="always")
def _passes_of(choice: int, here: Numbers) -> tuple[int, int]:
    """A pass by itself and -1, or the two passes of a block: of the choices on a device the one with this number."""
    count = len(here)
    if choice < count:
        return here[choice], -1
    return here[(choice - count) // count], here[(choice - count) % count]


@njit(inline="always")
def _put(p: int, q: int, depth: int, n: int, keeps: Numbers, done: Numbers, held: Numbers, slots: Numbers) -> None:
    """p next, in a block with q unless that is -1: the slot, and with it what has run of n passes and what is held."""
    slots[depth] = p if q < 0 else n + n * p + q
    done[depth + 1] = done[depth] | 1 << p
    held[depth + 1] = held[depth] + keeps[p]
    if q >= 0:
        done[depth + 1] |= 1 << q
        held[depth + 1] += keeps[q]


@njit(cache=True)
def device_orders(
    here: Numbers,
    before: Numbers,
    ticks: Numbers,
    least: Numbers,
    block: Numbers,
    takes: Numbers,
    keeps: Numbers,
    paths: Numbers,
    head: Numbers,
    room: int,
    limit: int,
    found: Numbers,
) -> int:
    """Write into `found` every order of the passes `here` that memory allows and that is over by the limit; how many.

    Time begins with the device's first pass, or earlier if `head` says when each pass can start. `before` has a bit for
    each pass that must come first; a forward f has `block[f]` ticks in a block, or -1, and a full backward that may be
    in one -2: it may take no time of its own. Other devices are relaxed to delays.
    -1 if there are more than `found` has rows, or they take too long to find.
    """
    count = len(here)
    choices = count + count * count if block.max() >= 0 else count
    every, rest, after = _whole(here, least, block, paths)
    start = np.zeros(len(ticks), np.int64)
    stack = np.zeros((6, count + 1), np.int64)
    tried, done, now, held, left, slots = stack[0], stack[1], stack[2], stack[3], stack[4], stack[5]
    left[0] = rest
    orders, depth, steps = 0, 0, 0
    while depth >= 0:
        steps += 1
        if steps > MOST_STEPS:
            return -1
        if done[depth] == every:
            if orders == len(found):
                return -1
            found[orders, :] = -1
            found[orders, :depth] = slots[:depth]
            orders += 1
            depth -= 1
            continue
        if tried[depth] == choices:
            depth -= 1
            continue
        p, q = _passes_of(tried[depth], here)
        tried[depth] += 1
        ran = done[depth]
        if not _may_run(p, q, ran, before, block) or held[depth] + takes[p] + (takes[q] if q >= 0 else 0) > room:
            continue
        begin = _earliest(p, q, ran, here, start, paths, max(now[depth], head[p]))
        end = begin + (ticks[p] if q < 0 else block[p])
        remaining = left[depth] - (least[p] if block[p] != -2 else 0)
        far = begin + after[p] if block.max() < 0 else end
        if end + remaining > limit or far > limit:
            continue
        start[p] = begin
        if q >= 0:
            start[q] = begin
        now[depth + 1], left[depth + 1], tried[depth + 1] = end, remaining, 0
        _put(p, q, depth, len(ticks), keeps, done, held, slots)
        depth += 1
    return orders
