"""Simulated annealing, compiled: a move is evaluated by simulating only what it can change. Arrays as in `moves`."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from solver.local_search.moves import critical_path, fill, fits, pick, shift


@njit(cache=True, nogil=True)
def simulate_from(shop, order, count, place, opening, start, sequence, rank, first, new_start, new_sequence, missing):  # type: ignore[no-untyped-def]
    """Starts as soon as possible of the units from `first` on in the old sequence; whether the order has no cycle.

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
def evaluate(shop, order, count, opening, rank, first, start, new_start):  # type: ignore[no-untyped-def]
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
def anneal(shop, order, count, place, opening, hot, cold, moves, evenness, reach, filling, seed, best_order, halt):  # type: ignore[no-untyped-def]
    """Anneal `order` in place from temperature `hot` to `cold` (ticks); `best_order` ends as the best order met.
    Another thread ends the run early by setting `halt[0]`.

    The energy is the longest device's time plus `evenness` of the mean, which leads across plateaus. Returns the best
    longest time, or -1 if the order given runs in a cycle.
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
    best, mean, longest = evaluate(shop, order, count, opening, rank, 0, start, new_start)
    energy = best + evenness * mean
    best_energy = energy
    best_order[:, :] = order
    critical, waiting = critical_path(shop, order, count, place, start, longest, path, gaps)
    for move in range(moves):
        if halt[0]:
            break
        if np.random.random() < filling:
            d, source, target = fill(shop, order, count, start)
        else:
            d, source, target = pick(shop, count, place, path, critical, gaps, waiting, reach, filling)
        if source == target:
            continue
        shift(shop, order, place, d, source, target)
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
            value, mean, device = evaluate(shop, order, count, opening, rank, first, start, new_start)
            worse = value + evenness * mean - energy
            temperature = hot * (cold / hot) ** (move / moves)
            accepted = worse <= 0 or np.random.random() < math.exp(-worse / temperature)
        if not accepted:
            shift(shop, order, place, d, target, source)
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
