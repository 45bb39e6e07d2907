"""The best combination of several devices' orders, for the exhaustive search: compiled. Slots as in its orders."""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.proofs.exhaustive.device_orders import NO_PATH, Numbers

# Values are counted in this part of a tick: the span of an order is a sum over up to three devices, by their number.
PARTS = 6


@njit(cache=True)
def value_of(
    chosen: Numbers, ticks: Numbers, least: Numbers, block: Numbers, needs: Numbers, lags: Numbers, span: bool
) -> int:
    """The least value, in parts of a tick, of orders of some devices (rows of slots, -1 where none), or -1: deadlock.

    Passes of devices without an order run as soon as they can, as short as they can.
    """
    n, devices = len(ticks), len(chosen)
    same, lasts, previous, first, last = _places(chosen, ticks, least, block)
    waits = _waits(same, previous, needs)
    # Start of each slot after time 0 and after the start of each device; found in rounds, since there are few.
    start = np.full((n, devices + 1), NO_PATH)
    start[:, devices] = 0
    for d in range(devices):
        if first[d] >= 0:
            start[first[d], d] = 0
    ready, count = np.zeros(n, np.int64), 0
    for p in range(n):
        if same[p] == p and waits[p] == 0:
            ready[count] = p
            count += 1
    ran, total = 0, 0
    while ran < count:
        r = ready[ran]
        ran += 1
        total = max(total, start[r, devices] + lasts[r])
        for p in range(n):
            lag, edges = _arcs(r, p, same, previous, needs, lags)
            if edges:
                slot = same[p]
                for d in range(devices + 1):
                    if start[r, d] >= 0:
                        start[slot, d] = max(start[slot, d], start[r, d] + lasts[r] + lag)
                waits[slot] -= edges
                if waits[slot] == 0:
                    ready[count] = slot
                    count += 1
    for p in range(n):
        if same[p] == p and waits[p] > 0:
            return -1
    return _span(start, lasts, last) if span else total * PARTS


@njit(cache=True)
def _places(
    chosen: Numbers, ticks: Numbers, least: Numbers, block: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Of each pass its slot, the slot's ticks and the slot before it; of each device its first and last slot, or -1.

    A block goes by the number of its forward.
    """
    n, devices = len(ticks), len(chosen)
    same, lasts, previous = np.arange(n), least.copy(), np.full(n, -1)
    first, last = np.full(devices, -1), np.full(devices, -1)
    for d in range(devices):
        for slot in chosen[d]:
            if slot < 0:
                break
            p = slot if slot < n else (slot - n) // n
            lasts[p] = ticks[p]
            if slot >= n:
                same[(slot - n) % n] = p
                lasts[p] = block[p]
            if first[d] < 0:
                first[d] = p
            previous[p] = last[d]
            last[d] = p
    return same, lasts, previous, first, last


@njit(cache=True)
def _waits(same: Numbers, previous: Numbers, needs: Numbers) -> Numbers:
    """How many arcs lead to each slot: from what its passes need, and from the slot before it."""
    waits = np.zeros(len(same), np.int64)
    for p in range(len(same)):
        for k in range(needs.shape[1]):
            if needs[p, k] >= 0:
                waits[same[p]] += 1
        if previous[p] >= 0:
            waits[p] += 1
    return waits


@njit(inline="always")
def _arcs(r: int, p: int, same: Numbers, previous: Numbers, needs: Numbers, lags: Numbers) -> tuple[int, int]:
    """The longest lag of the arcs from slot r to pass p, and how many these are."""
    lag, edges = 0, 0
    for k in range(needs.shape[1]):
        if needs[p, k] >= 0 and same[needs[p, k]] == r:
            lag, edges = max(lag, lags[p, k]), edges + 1
    if previous[p] == r:
        edges += 1
    return lag, edges


@njit(cache=True)
def _span(start: Numbers, ticks: Numbers, last: Numbers) -> int:
    """The largest mean over cycles of devices of the way from the start of each to the end of the next.

    Device e ends so long after d starts, and starts no earlier than one span before it ends: around a cycle of k
    devices these ways add up to k spans at most; and with a span of the largest mean there are starts for all.
    """
    devices = len(last)
    worst = 0
    for a in range(devices):
        for b in range(devices):
            for c in range(devices):
                if last[a] < 0 or last[b] < 0 or last[c] < 0:
                    continue
                if a == b == c:
                    worst = max(worst, PARTS * (start[last[a], a] + ticks[last[a]]))
                elif b == c:
                    two = start[last[b], a] + ticks[last[b]] + start[last[a], b] + ticks[last[a]]
                    worst = max(worst, PARTS // 2 * two)
                elif a not in (b, c):
                    three = start[last[b], a] + ticks[last[b]] + start[last[c], b] + ticks[last[c]]
                    worst = max(worst, PARTS // 3 * (three + start[last[a], c] + ticks[last[a]]))
    return worst


@njit(cache=True)
def best_combination(
    orders: Numbers,
    counts: Numbers,
    turn: Numbers,
    costs: tuple[Numbers, Numbers, Numbers, Numbers, Numbers],
    span: bool,
    limit: int,
    effort: int,
) -> int:
    """The least value at most `limit`, in parts of a tick, of one order of each device, taken in `turn`; -1: none.

    -2 after so many values were worked out.
    """
    ticks, least, block, needs, lags = costs
    devices = len(turn)
    chosen = np.full((devices, orders.shape[2]), -1)
    at, best = np.zeros(devices, np.int64), -1
    level = 0
    while level >= 0:
        device = turn[level]
        if at[level] == counts[device]:
            at[level] = 0
            chosen[device, :] = -1
            level -= 1
            continue
        chosen[device, :] = orders[device, at[level]]
        at[level] += 1
        effort -= 1
        if effort < 0:
            return -2
        value = value_of(chosen, ticks, least, block, needs, lags, span)
        if value < 0 or value > limit:
            continue
        if level == devices - 1:
            best, limit = value, value - 1
        else:
            level += 1
    return best
