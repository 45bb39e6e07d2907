"""Simulated annealing, compiled: a move is evaluated by simulating only what it can change. Arrays as in `moves`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from solver.local_search.mode_moves import change_mode
from solver.local_search.modes import ABSENT, FUSED, begin, carry, undo
from solver.local_search.moves import Array, critical_path, fill, fits, pick, shift


@njit(cache=True, nogil=True)
def simulate_from(  # type: ignore[no-untyped-def]
    shop, order, count, place, opening, start, sequence, rank, first, length, new_start, new_sequence, missing
):
    """Starts as soon as possible of the units from `first` on in the old sequence; whether the order has no cycle.

    What came before `first` in the old topological `sequence` cannot depend on what moved, and keeps its `start`. The
    sequence has this `length`; what has no place is left out.
    """
    head = tail = last = first
    for k in range(first, length):
        i = sequence[k]
        if place[i] < 0:
            continue
        last += 1
        d = shop.device[i]
        begin = opening[d]
        open_needs = 0
        if place[i] > 0:
            before = order[d, place[i] - 1]
            if rank[before] < first:
                begin = max(begin, start[before] + shop.ticks[before])
            else:
                open_needs += 1
        unit = i
        while unit >= 0:
            for a in range(shop.waits_at[unit], shop.waits_at[unit + 1]):
                before = shop.waits_for[a]
                if rank[before] < first:
                    begin = max(begin, start[before] + shop.ticks[before] + shop.waits_lag[a])
                else:
                    open_needs += 1
            unit = shop.mate[unit]
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
        unit = i
        while unit >= 0:
            for a in range(shop.feeds_at[unit], shop.feeds_at[unit + 1]):
                j = shop.feeds_to[a]
                new_start[j] = max(new_start[j], end + shop.feeds_lag[a])
                missing[j] -= 1
                if missing[j] == 0 and place[j] >= 0:
                    new_sequence[tail] = j
                    tail += 1
            unit = shop.mate[unit]
    return tail == last


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


class Best(NamedTuple):
    """The best orders met, with what was joined in them."""

    order: Array
    count: Array
    mate: Array
    fused: Array


@njit(cache=True, nogil=True)
def keep(best, shop, modes, rows):  # type: ignore[no-untyped-def]
    """Let these orders be the best."""
    best.order[:, :] = rows.order
    if modes is not None:
        best.count[:], best.mate[:], best.fused[:] = rows.count, shop.mate, modes.of[:, FUSED]


@njit(cache=True, nogil=True)
def reached(modes, rows, d, sequence, length):  # type: ignore[no-untyped-def]
    """What the edits of a move reach on a device: lowest and highest place, and the least rank in the sequence.

    What has come to have a place is put behind the sequence, whose length is returned too.
    """
    low, high, first = modes.touched[0], min(modes.touched[1], rows.count[d] - 1), modes.touched[2]
    for k in range(low, high + 1):
        i = rows.order[d, k]
        first = min(first, rows.rank[i])
        if rows.rank[i] == ABSENT:
            sequence[length] = i
            length += 1
    return low, high, first, length


@njit(cache=True, nogil=True)
def anneal(shop, modes, rows, opening, hot, cold, moves, evenness, reach, filling, changing, seed, best, halt):  # type: ignore[no-untyped-def]
    """Anneal the orders in place from temperature `hot` to `cold` (ticks); `best` ends as the best met.
    Another thread ends the run early by setting `halt[0]`.

    The energy is the longest device's time plus `evenness` of the mean, which leads across plateaus. The share
    `changing` of moves changes modes. Returns the best longest time, or -1 if the order given runs in a cycle.
    """
    np.random.seed(seed)
    order, count, place, rank = rows
    n = shop.ticks.shape[0]
    start, new_start = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sequence, new_sequence = np.arange(n), np.arange(n)
    missing = np.zeros(n, np.int64)
    path, gaps = np.zeros(n, np.int64), np.zeros(n, np.int64)
    length = count.sum()
    rank[:] = 0
    if not simulate_from(
        shop, order, count, place, opening, start, sequence, rank, 0, n, new_start, new_sequence, missing
    ):
        return -1
    rank[:] = ABSENT
    for k in range(length):
        sequence[k] = new_sequence[k]
        rank[sequence[k]] = k
        start[sequence[k]] = new_start[sequence[k]]
    value, mean, longest = evaluate(shop, order, count, opening, rank, 0, start, new_start)
    least = value
    energy = least_energy = value + evenness * mean
    keep(best, shop, modes, rows)
    if modes is not None:
        begin(modes)
    critical, waiting = critical_path(shop, order, count, place, start, longest, path, gaps)
    for move in range(moves):
        if halt[0]:
            break
        if modes is not None and np.random.random() < changing:
            d = change_mode(shop, modes, rows, path, critical, reach)
            if modes.log[0, 0] == 0:
                continue
        else:
            if np.random.random() < filling:
                d, source, target = fill(shop, order, count, start)
            else:
                d, source, target = pick(shop, count, place, path, critical, gaps, waiting, reach, filling)
            if source == target:
                continue
            if modes is None:
                shift(shop, order, place, d, source, target)
                low, high, first, now = min(source, target), max(source, target), n, n
            else:
                carry(shop, modes, rows, d, source, target)
        if modes is not None:
            low, high, first, now = reached(modes, rows, d, sequence, length)
        accepted = fits(shop, order, d, low, high)
        if accepted:
            for k in range(low, high + 1):
                first = min(first, rank[order[d, k]])
            accepted = simulate_from(
                shop, order, count, place, opening, start, sequence, rank, first, now, new_start, new_sequence, missing
            )
        if accepted:
            value, mean, device = evaluate(shop, order, count, opening, rank, first, start, new_start)
            worse = value + evenness * mean - energy
            temperature = hot * (cold / hot) ** (move / moves)
            accepted = worse <= 0 or np.random.random() < math.exp(-worse / temperature)
        if not accepted:
            if modes is None:
                shift(shop, order, place, d, target, source)
            else:
                undo(shop, modes, rows)
            continue
        if modes is not None:
            for k in range(first, now):
                rank[sequence[k]] = ABSENT
            begin(modes)
            length = count.sum()
        for k in range(first, length):
            i = new_sequence[k]
            sequence[k] = i
            rank[i] = k
            start[i] = new_start[i]
        energy += worse
        critical, waiting = critical_path(shop, order, count, place, start, device, path, gaps)
        if value < least or (value == least and energy < least_energy):
            least, least_energy = value, energy
            keep(best, shop, modes, rows)
    return least
