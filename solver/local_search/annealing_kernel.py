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
def reopen(  # type: ignore[no-untyped-def]
    shop, modes, order, place, opening, start, sequence, rank, first, length, new_start, new_sequence, missing
):
    """Begin to simulate from `first` on: what each unit waits for, and a start after what came before.

    Returns the length of the new sequence, and what it is with the units that have to wait.
    """
    ready = last = first
    for k in range(first, length):
        i = sequence[k]
        if place[i] < 0:
            continue
        last += 1
        d = shop.device[i]
        begun = opening[d]
        open_needs = 0
        if place[i] > 0:
            before = order[d, place[i] - 1]
            if rank[before] < first:
                begun = max(begun, start[before] + shop.ticks[before])
            else:
                open_needs += 1
        unit = i
        while unit >= 0:
            for a in range(shop.waits_at[unit], shop.waits_at[unit + 1]):
                before = shop.waits_for[a]
                if rank[before] < first:
                    begun = max(begun, start[before] + shop.ticks[before] + shop.waits_lag[a])
                else:
                    open_needs += 1
            if modes is None:
                break
            unit = modes.mate[unit]
        new_start[i] = begun
        missing[i] = open_needs
        if open_needs == 0:
            new_sequence[ready] = i
            ready += 1
    return ready, last


@njit(cache=True, nogil=True)
def simulate_from(  # type: ignore[no-untyped-def]
    shop, modes, order, count, place, opening, start, sequence, rank, first, length, new_start, new_sequence, missing
):
    """Starts as soon as possible of the units from `first` on in the old sequence; whether the order has no cycle.

    What came before `first` in the old topological `sequence` cannot depend on what moved, and keeps its `start`. The
    sequence has this `length`; what has no place is left out.
    """
    tail, last = reopen(
        shop, modes, order, place, opening, start, sequence, rank, first, length, new_start, new_sequence, missing
    )
    head = first
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
            if modes is None:
                break
            unit = modes.mate[unit]
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
def keep(best, modes, rows):  # type: ignore[no-untyped-def]
    """Let these orders be the best."""
    for d in range(rows.count.shape[0]):
        best.count[d] = rows.count[d]
        for k in range(rows.count[d]):
            best.order[d, k] = rows.order[d, k]
    if modes is not None:
        for n in range(modes.mate.shape[0]):
            best.mate[n], best.fused[n] = modes.mate[n], modes.of[n, FUSED]


@njit(cache=True, nogil=True)
def propose(shop, modes, rows, start, path, critical, gaps, waiting, reach, filling, changing):  # type: ignore[no-untyped-def]
    """Make a move: its device, and the places that something left and went to; no device if nothing was done."""
    if modes is not None and np.random.random() < changing:
        d = change_mode(shop, modes, rows, path, critical, reach)
        return (d if modes.log[0, 0] else -1), 0, 0
    if np.random.random() < filling:
        d, source, target = fill(shop, rows.order, rows.count, start)
    else:
        d, source, target = pick(shop, rows.count, rows.place, path, critical, gaps, waiting, reach, filling)
    if source == target:
        return -1, 0, 0
    if modes is None:
        shift(shop, rows.order, rows.place, d, source, target)
    else:
        carry(shop, modes, rows, d, source, target)
    return d, source, target


@njit(cache=True, nogil=True)
def withdraw(shop, modes, rows, d, source, target):  # type: ignore[no-untyped-def]
    """Take a move back."""
    if modes is None:
        shift(shop, rows.order, rows.place, d, target, source)
    else:
        undo(shop, modes, rows)


@njit(cache=True, nogil=True)
def touched(modes, rows, d, source, target, sequence, length):  # type: ignore[no-untyped-def]
    """What a move touched on its device: lowest and highest place, and the least rank in the sequence.

    What has come to have a place is put behind the sequence, whose length is returned too.
    """
    if modes is None:
        low, high, first = min(source, target), max(source, target), length
        for k in range(low, high + 1):
            first = min(first, rows.rank[rows.order[d, k]])
        return low, high, first, length
    low, high, first = modes.touched[0], min(modes.touched[1], rows.count[d] - 1), modes.touched[2]
    for k in range(low, high + 1):
        i = rows.order[d, k]
        first = min(first, rows.rank[i])
        if rows.rank[i] == ABSENT:
            sequence[length] = i
            length += 1
    return low, high, first, length


@njit(cache=True, nogil=True)
def accept(modes, rows, first, length, start, sequence, new_start, new_sequence):  # type: ignore[no-untyped-def]
    """Let what was simulated anew from `first` on be so; the length of the sequence from now on."""
    if modes is not None:
        for k in range(first, length):
            rows.rank[sequence[k]] = ABSENT
        begin(modes)
        length = rows.count.sum()
    for k in range(first, length):
        i = new_sequence[k]
        sequence[k] = i
        rows.rank[i] = k
        start[i] = new_start[i]
    return length


@njit(cache=True, nogil=True)
def anneal(shop, modes, rows, opening, hot, cold, moves, evenness, reach, filling, changing, seed, best, halt):  # type: ignore[no-untyped-def]
    """Anneal the orders in place from temperature `hot` to `cold` (ticks); `best` ends as the best met.
    Another thread ends the run early by setting `halt[0]`.

    The energy is the longest device's time plus `evenness` of the mean, which leads across plateaus. The share
    `changing` of moves changes modes; they are fixed if `modes` is None. Returns the best longest time, or -1 if the
    order given runs in a cycle.
    """
    np.random.seed(seed)
    order, count, place, rank = rows
    n = shop.ticks.shape[0]
    start, new_start = np.zeros(n, np.int64), np.zeros(n, np.int64)
    sequence, new_sequence = np.arange(n), np.arange(n)
    missing, path, gaps = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    if not simulate_from(
        shop, modes, order, count, place, opening, start, sequence, rank, 0, n, new_start, new_sequence, missing
    ):
        return -1
    rank[:] = ABSENT
    length = accept(modes, rows, 0, count.sum(), start, sequence, new_start, new_sequence)
    least, mean, longest = evaluate(shop, order, count, opening, rank, 0, start, new_start)
    energy = least_energy = least + evenness * mean
    keep(best, modes, rows)
    critical, waiting = critical_path(shop, modes, order, count, place, start, longest, path, gaps)
    for move in range(moves):
        if halt[0]:
            break
        d, source, target = propose(shop, modes, rows, start, path, critical, gaps, waiting, reach, filling, changing)
        if d < 0:
            continue
        low, high, first, now = touched(modes, rows, d, source, target, sequence, length)
        value, worse, device = 0, 0.0, 0
        accepted = fits(shop, order, d, low, high) and simulate_from(
            shop,
            modes,
            order,
            count,
            place,
            opening,
            start,
            sequence,
            rank,
            first,
            now,
            new_start,
            new_sequence,
            missing,
        )
        if accepted:
            value, mean, device = evaluate(shop, order, count, opening, rank, first, start, new_start)
            worse = value + evenness * mean - energy
            temperature = hot * (cold / hot) ** (move / moves)
            accepted = worse <= 0 or np.random.random() < math.exp(-worse / temperature)
        if not accepted:
            withdraw(shop, modes, rows, d, source, target)
            continue
        length = accept(modes, rows, first, now, start, sequence, new_start, new_sequence)
        energy += worse
        critical, waiting = critical_path(shop, modes, order, count, place, start, device, path, gaps)
        if value < least or (value == least and energy < least_energy):
            least, least_energy = value, energy
            keep(best, modes, rows)
    return least


@njit(cache=True, nogil=True)
def anneal_with_modes(shop, modes, rows, *parameters):  # type: ignore[no-untyped-def]
    """`anneal` where modes are open, with machine code of its own: it takes four times as long to compile."""
    return anneal(shop, modes, rows, *parameters)
