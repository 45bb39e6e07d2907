"""Simulated annealing, compiled: a move is evaluated by simulating only what it can change. Arrays as in `moves`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from solver.local_search.exchange import EXCHANGING, draw_pair, exchange
from solver.local_search.incremental_simulation import accept, evaluate, simulate_from
from solver.local_search.mode_edits import carry, undo
from solver.local_search.mode_moves import change_mode
from solver.local_search.modes import ABSENT, FUSED
from solver.local_search.moves import Array, critical_path, fill, fits, pick, shift


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
def all_fit(shop, rows):  # type: ignore[no-untyped-def]
    """Whether memory holds everywhere."""
    d, devices = 0, rows.count.shape[0]
    while d < devices and fits(shop, rows.order, d, 0, rows.count[d] - 1):
        d += 1
    return d == devices


@njit(cache=True, nogil=True)
def anneal(shop, modes, rows, groups, opening, hot, cold, moves, evenness, reach, filling, changing, seed, best, halt):  # type: ignore[no-untyped-def]
    """Anneal the orders in place from temperature `hot` to `cold` (ticks); `best` ends as the best met.
    Another thread ends the run early by setting `halt[0]`.

    The energy is the longest device's time plus `evenness` of the mean, which leads across plateaus. The share
    `changing` of moves changes modes; they are fixed if `modes` is None. Rows of `groups` may be exchanged. Returns
    the best longest time, or -1 if the order given runs in a cycle.
    """
    np.random.seed(seed)
    order, count, place, rank = rows
    d = source = target = one = other = 0
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
        exchanging = groups.shape[0] > 1 and np.random.random() < EXCHANGING
        if exchanging:
            one, other = draw_pair(groups)
            exchange(shop, rows, groups[one], groups[other])
            first, now = 0, length
            fitting = all_fit(shop, rows)
        else:
            d, source, target = propose(
                shop, modes, rows, start, path, critical, gaps, waiting, reach, filling, changing
            )
            if d < 0:
                continue
            low, high, first, now = touched(modes, rows, d, source, target, sequence, length)
            fitting = fits(shop, order, d, low, high)
        value, worse, device = 0, 0.0, 0
        accepted = fitting and simulate_from(
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
            if exchanging:
                exchange(shop, rows, groups[one], groups[other])
            else:
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
