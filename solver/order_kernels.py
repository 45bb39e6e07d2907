"""Annealing of orders, compiled: moves along the critical path, each judged by simulating only what it can change.

Critical-path moves are those of van Laarhoven, Aarts and Lenstra for the job shop (Operations Research 40, 1992); here
units may jump over several others, stages keep their micro-batches in line, and memory must hold.

All arrays are by unit unless said: `order[d, k]` is the k-th unit of device d, of which there are `count[d]`, and
`place` its inverse; `waits` and `feeds` are the needs in compressed rows (unit n's are `at[n]:at[n + 1]`, each a unit
and a lag); `opening[d]` is the tick before which device d does not start; capacity -1 is none.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

Array = Any  # numpy arrays of int64, one dimension unless said


class Shop(NamedTuple):
    """What does not change while orders do."""

    ticks: Array
    device: Array
    line: Array
    takes: Array
    gives: Array
    capacity: Array
    waits_at: Array
    waits_for: Array
    waits_lag: Array
    feeds_at: Array
    feeds_to: Array
    feeds_lag: Array


@njit(cache=True, nogil=True)
def simulate_from(shop, order, count, place, opening, start, sequence, rank, first, new_start, new_sequence, missing):  # type: ignore[no-untyped-def]
    """Starts as soon as possible of the units from `first` on in the old sequence; whether the order has no circle.

    What came before `first` in the old topological `sequence` cannot depend on what moved, and keeps its `start`.
    """
    n = shop.ticks.shape[0]
    head = tail = first
    for k in range(first, n):
        i = sequence[k]
        d = shop.device[i]
        begin = opening[d]
        open_needs = 0
        if place[i] > 0:
            before = order[d, place[i] - 1]
            if rank[before] < first:
                begin = max(begin, start[before] + shop.ticks[before])
            else:
                open_needs += 1
        for a in range(shop.waits_at[i], shop.waits_at[i + 1]):
            before = shop.waits_for[a]
            if rank[before] < first:
                begin = max(begin, start[before] + shop.ticks[before] + shop.waits_lag[a])
            else:
                open_needs += 1
        new_start[i] = begin
        missing[i] = open_needs
        if open_needs == 0:
            new_sequence[tail] = i
            tail += 1
    while head < tail:
        i = new_sequence[head]
        head += 1
        end = new_start[i] + shop.ticks[i]
        d = shop.device[i]
        behind = place[i] + 1
        if behind < count[d]:
            j = order[d, behind]
            new_start[j] = max(new_start[j], end)
            missing[j] -= 1
            if missing[j] == 0:
                new_sequence[tail] = j
                tail += 1
        for a in range(shop.feeds_at[i], shop.feeds_at[i + 1]):
            j = shop.feeds_to[a]
            new_start[j] = max(new_start[j], end + shop.feeds_lag[a])
            missing[j] -= 1
            if missing[j] == 0:
                new_sequence[tail] = j
                tail += 1
    return tail == n


@njit(cache=True, nogil=True)
def judge(shop, order, count, opening, rank, first, start, new_start):  # type: ignore[no-untyped-def]
    """The longest any device takes from its opening, the mean over the devices, and which device is the longest."""
    worst, worst_device, total = -1, 0, 0.0
    for d in range(count.shape[0]):
        if count[d] == 0:
            continue
        last = order[d, count[d] - 1]
        begin = new_start[last] if rank[last] >= first else start[last]
        took = begin + shop.ticks[last] - opening[d]
        total += took
        if took > worst:
            worst, worst_device = took, d
    return worst, total / count.shape[0], worst_device


@njit(cache=True, nogil=True)
def critical_path(shop, order, count, place, start, device, path, gaps):  # type: ignore[no-untyped-def]
    """A path that decides when the device ends: units that wait for the one before them on their device, in `path`.

    Units that wait for another device, with their own idle until then, go into `gaps`. Returns how many of each.
    """
    found = waiting = 0
    i = order[device, count[device] - 1]
    while i >= 0:
        d = shop.device[i]
        chosen, on_device, ties = -1, False, 0
        if place[i] > 0:
            before = order[d, place[i] - 1]
            if start[before] + shop.ticks[before] == start[i]:
                chosen, on_device, ties = before, True, 1
        for a in range(shop.waits_at[i], shop.waits_at[i + 1]):
            before = shop.waits_for[a]
            if before != chosen and start[before] + shop.ticks[before] + shop.waits_lag[a] == start[i]:
                ties += 1
                if np.random.random() * ties < 1.0:
                    chosen, on_device = before, False
        if on_device:
            path[found] = i
            found += 1
        elif place[i] > 0:
            gaps[waiting] = i
            waiting += 1
        i = chosen
    return found, waiting


@njit(cache=True, nogil=True)
def shift(order, place, d, source, target):  # type: ignore[no-untyped-def]
    """Move the unit at one place of a device to another; those between close up."""
    moved = order[d, source]
    step = 1 if target > source else -1
    k = source
    while k != target:
        order[d, k] = order[d, k + step]
        place[order[d, k]] = k
        k += step
    order[d, target] = moved
    place[moved] = target


@njit(cache=True, nogil=True)
def fits(shop, order, d, low, high):  # type: ignore[no-untyped-def]
    """Whether memory holds at the places from low to high of a device."""
    if shop.capacity[d] < 0:
        return True
    level = 0
    for k in range(high + 1):
        i = order[d, k]
        level += shop.takes[i]
        if k >= low and level > shop.capacity[d]:
            return False
        level -= shop.gives[i]
    return True


@njit(cache=True, nogil=True)
def pick(shop, order, count, place, path, critical, gaps, waiting, reach):  # type: ignore[no-untyped-def]
    """A move: the device, the place a unit leaves and the place it goes to; equal places where there is none."""
    n = shop.ticks.shape[0]
    far = 1 if np.random.random() < 0.4 else np.random.randint(1, reach + 1)
    chance = np.random.random()
    if waiting > 0 and chance < 0.05:
        # Something later fills the time in which the device waits.
        unit = gaps[np.random.randint(waiting)]
        d, target = shop.device[unit], place[unit]
        source, earlier = min(count[d] - 1, target + far), True
    else:
        unit = path[np.random.randint(critical)] if critical > 0 and chance < 0.9 else np.random.randint(n)
        d, behind = shop.device[unit], place[unit]
        if behind == 0:
            return d, 0, 0
        # Either the later of the two goes forward, or the one before it goes back.
        earlier = np.random.random() < 0.5
        source = behind if earlier else behind - 1
        target = max(0, source - far) if earlier else min(count[d] - 1, source + far)
    step = -1 if earlier else 1
    k = source
    while k != target and shop.line[order[d, k + step]] != shop.line[order[d, source]]:
        k += step
    return d, source, k


@njit(cache=True, nogil=True)
def anneal(shop, order, count, place, opening, hot, cold, moves, evenness, reach, seed, best_order, halt):  # type: ignore[no-untyped-def]
    """Anneal `order` in place from temperature `hot` to `cold` (ticks); `best_order` ends as the best order met.
    Another thread ends the run early by setting `halt[0]`.

    The energy is the longest device's time plus `evenness` of the mean, which leads across plateaus. Returns the best
    longest time, or -1 if the order given runs in a circle.
    """
    np.random.seed(seed)
    n = shop.ticks.shape[0]
    start, new_start = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sequence, new_sequence = np.arange(n), np.arange(n)
    rank, missing = np.zeros(n, np.int64), np.zeros(n, np.int64)
    path, gaps = np.zeros(n, np.int64), np.zeros(n, np.int64)
    if not simulate_from(
        shop, order, count, place, opening, start, sequence, rank, 0, new_start, new_sequence, missing
    ):
        return -1
    for k in range(n):
        sequence[k] = new_sequence[k]
        rank[sequence[k]] = k
        start[k] = new_start[k]
    best, mean, longest = judge(shop, order, count, opening, rank, 0, start, new_start)
    energy = best + evenness * mean
    best_energy = energy
    best_order[:, :] = order
    critical, waiting = critical_path(shop, order, count, place, start, longest, path, gaps)
    for move in range(moves):
        if halt[0]:
            break
        d, source, target = pick(shop, order, count, place, path, critical, gaps, waiting, reach)
        if source == target:
            continue
        shift(order, place, d, source, target)
        low, high = min(source, target), max(source, target)
        accepted = fits(shop, order, d, low, high)
        if accepted:
            first = n
            for k in range(low, high + 1):
                first = min(first, rank[order[d, k]])
            accepted = simulate_from(
                shop, order, count, place, opening, start, sequence, rank, first, new_start, new_sequence, missing
            )
        if accepted:
            value, mean, device = judge(shop, order, count, opening, rank, first, start, new_start)
            worse = value + evenness * mean - energy
            temperature = hot * (cold / hot) ** (move / moves)
            accepted = worse <= 0 or np.random.random() < math.exp(-worse / temperature)
        if not accepted:
            shift(order, place, d, target, source)
            continue
        for k in range(first, n):
            i = new_sequence[k]
            sequence[k] = i
            rank[i] = k
            start[i] = new_start[i]
        energy += worse
        critical, waiting = critical_path(shop, order, count, place, start, device, path, gaps)
        if value < best or (value == best and energy < best_energy):
            best, best_energy = value, energy
            best_order[:, :] = order
    return best
