"""Annealing for memory or for the mean under random durations, compiled. Arrays as in `moves`.

`ticks[n, k]` is the duration of unit n in sample k, `held[d]` the tick until which device d idles in every sample.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from solver.backends.compiled import inner
from solver.local_search.incremental_simulation import evaluate, simulate_from
from solver.local_search.moves import critical_path, fill, pick, shift


@inner
def delay(new_end, i, before, lag, rank, first, end):  # type: ignore[no-untyped-def]
    """Let `new_end[i]`, which is still a start, be no earlier than a lag after the end of the one before."""
    old = rank[before] < first
    for s in range(new_end.shape[1]):
        new_end[i, s] = max(new_end[i, s], (end[before, s] if old else new_end[before, s]) + lag)


@inner
def sample_from(shop, order, place, held, ticks, sequence, rank, first, end, new_end):  # type: ignore[no-untyped-def]
    """The ends, in every sample, of the units from `first` on in `sequence`; those of old `rank` before it keep `end`.

    Everything starts as soon as the order allows, and the lags are the same in every sample.
    """
    samples = ticks.shape[1]
    for k in range(first, sequence.shape[0]):
        i = sequence[k]
        d = shop.device[i]
        for s in range(samples):
            new_end[i, s] = held[d] if place[i] == 0 else 0.0
        if place[i] > 0:
            delay(new_end, i, order[d, place[i] - 1], 0, rank, first, end)
        for a in range(shop.waits_at[i], shop.waits_at[i + 1]):
            delay(new_end, i, shop.waits_for[a], shop.waits_lag[a], rank, first, end)
        for s in range(samples):
            new_end[i, s] += ticks[i, s]


@inner
def mean_value(order, count, ticks, span, rank, first, end, new_end):  # type: ignore[no-untyped-def]
    """The mean over the samples of the last end, or with `span` of the longest time from a device's first start."""
    total = 0.0
    for s in range(ticks.shape[1]):
        worst = 0.0
        for d in range(count.shape[0]):
            if count[d] == 0:
                continue
            i, last = order[d, 0], order[d, count[d] - 1]
            took = new_end[last, s] if rank[last] >= first else end[last, s]
            if span:
                took -= (new_end[i, s] if rank[i] >= first else end[i, s]) - ticks[i, s]
            worst = max(worst, took)
        total += worst
    return total / ticks.shape[1]


@inner
def held_on(shop, order, count, d):  # type: ignore[no-untyped-def]
    """The peak memory of a device, and the mean of what it holds while each of its units runs."""
    level, peak, total = 0, 0, 0.0
    for k in range(count[d]):
        i = order[d, k]
        level += shop.takes[i]
        peak = max(peak, level)
        total += level
        level -= shop.gives[i]
    return peak, total / max(1, count[d])


@inner
def memory_energy(shop, order, count, weights):  # type: ignore[no-untyped-def]
    """The fullest device's memory, a part of all devices' peaks, and a small part of what they hold on average."""
    worst, peaks, means = 0.0, 0.0, 0.0
    for d in range(count.shape[0]):
        peak, mean = held_on(shop, order, count, d)
        worst = max(worst, peak * weights[d])
        peaks += peak * weights[d]
        means += mean * weights[d]
    return worst + (peaks / 4 + means / 64) / count.shape[0]


@inner
def keep(best_order, order, count):  # type: ignore[no-untyped-def]
    """Let this order be the best."""
    for d in range(count.shape[0]):
        for k in range(count[d]):
            best_order[d, k] = order[d, k]


@njit(cache=True, nogil=True)
def settle(  # type: ignore[no-untyped-def]
    shop, rows, opening, held, ticks, span, most, weights, hot, cold, moves, reach, filling, seed, best_order, halt
):
    """Anneal the orders in place from temperature `hot` to `cold`; `best_order` ends as the best order met.

    No order is taken whose devices need more than `most` ticks from their openings without noise (-1: any may), nor
    one that breaks the capacity. The energy is the mean over the samples, or without samples what `memory_energy`
    makes of the memory. Another thread ends the run early by setting `halt[0]`. Returns the least energy; -1 if the
    order given runs in a cycle.
    """
    np.random.seed(seed)
    order, count, place, rank = rows
    n, by_mean = shop.ticks.shape[0], ticks.shape[1] > 0
    start, new_start = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sequence, new_sequence = np.arange(n), np.arange(n)
    missing, path, gaps = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    end, new_end = np.zeros(ticks.shape), np.zeros(ticks.shape)
    energy = best = -1.0
    critical = waiting = 0
    for move in range(-1, moves):
        first, d, source, target = 0, 0, 0, 0
        if move >= 0:
            if halt[0]:
                break
            if np.random.random() < filling:
                d, source, target = fill(shop, order, count, start)
            else:
                d, source, target = pick(shop, count, place, path, critical, gaps, waiting, reach, 0.2)
            if source == target:
                continue
            shift(shop, order, place, d, source, target)
            first = n
            for k in range(min(source, target), max(source, target) + 1):
                first = min(first, rank[order[d, k]])
        room = shop.capacity[d] < 0 or held_on(shop, order, count, d)[0] <= shop.capacity[d]
        accepted = room and simulate_from(
            shop,
            None,
            order,
            count,
            place,
            opening,
            start,
            sequence,
            rank,
            first,
            n,
            first,
            n,
            new_start,
            new_sequence,
            missing,
        )
        longest = 0
        if accepted:
            value, _, longest = evaluate(shop, order, count, opening, rank, first, start, new_start)
            accepted = most < 0 or value <= most
        found = 0.0
        if accepted:
            if by_mean:
                sample_from(shop, order, place, held, ticks, new_sequence, rank, first, end, new_end)
                found = mean_value(order, count, ticks, span, rank, first, end, new_end)
            else:
                found = memory_energy(shop, order, count, weights)
            if move >= 0 and found > energy:
                temperature = hot * (cold / hot) ** (move / moves)
                accepted = np.random.random() < math.exp((energy - found) / temperature)
        if not accepted:
            if move < 0:
                return -1.0
            shift(shop, order, place, d, target, source)
            continue
        for k in range(first, n):
            i = new_sequence[k]
            sequence[k] = i
            rank[i] = k
            start[i] = new_start[i]
            for s in range(ticks.shape[1]):
                end[i, s] = new_end[i, s]
        energy = found
        if by_mean:
            critical, waiting = critical_path(shop, None, order, count, place, start, longest, path, gaps)
        if best < 0 or energy < best:
            best = energy
            keep(best_order, order, count)
    return best
