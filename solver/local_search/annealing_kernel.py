"""Simulated annealing, compiled: a move is evaluated by simulating only what it can change. Arrays as in `moves`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from solver.backends.compiled import inner
from solver.local_search.exchange import EXCHANGING, draw_pair, exchange
from solver.local_search.incremental_simulation import evaluate, simulate_from
from solver.local_search.memory_levels import all_fit, fill_levels, fits_from
from solver.local_search.mode_edits import begin, carry, undo
from solver.local_search.mode_moves import change_mode
from solver.local_search.modes import ABSENT, FUSED
from solver.local_search.moves import Array, critical_path, fill, pick, shift
from solver.local_search.propagation import LENGTH, SIMULATED, forget, settle_in, settle_tails, simulate_move


class Best(NamedTuple):
    """The best orders met, with what was joined in them."""

    order: Array
    count: Array
    mate: Array
    fused: Array


class Work(NamedTuple):
    """What annealing notes by the way: the critical path, what waits on it, the memory held behind every place."""

    path: Array
    gaps: Array
    level: Array


@inner
def keep(best, modes, rows):  # type: ignore[no-untyped-def]
    """Let these orders be the best."""
    for d in range(rows.count.shape[0]):
        best.count[d] = rows.count[d]
        for k in range(rows.count[d]):
            best.order[d, k] = rows.order[d, k]
    if modes is not None:
        for n in range(modes.mate.shape[0]):
            best.mate[n], best.fused[n] = modes.mate[n], modes.of[n, FUSED]


@inner
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


@inner
def withdraw(shop, modes, rows, d, source, target):  # type: ignore[no-untyped-def]
    """Take a move back."""
    if modes is None:
        shift(shop, rows.order, rows.place, d, target, source)
    else:
        undo(shop, modes, rows)


@inner
def touched(modes, rows, times, d, source, target):  # type: ignore[no-untyped-def]
    """What a move touched on its device: lowest and highest place, the least and the highest rank in the sequence.

    What has come to have a place is put behind the sequence, whose end is returned too.
    """
    low, high, end = min(source, target), max(source, target), times.clock[LENGTH]
    first, last = end, -1
    if modes is None:
        for k in range(low, high + 1):
            rank = rows.rank[rows.order[d, k]]
            first, last = min(first, rank), max(last, rank)
        return low, high, first, last, end
    low, high = modes.touched[0], min(modes.touched[1], rows.count[d] - 1)
    first, last = modes.touched[2], modes.touched[3]
    for k in range(low, high + 1):
        i = rows.order[d, k]
        rank = rows.rank[i]
        if rank == ABSENT:
            times.sequence[end] = i
            end += 1
        else:
            first, last = min(first, rank), max(last, rank)
    return low, high, first, last, end


@inner
def begin_times(shop, modes, rows, times, opening):  # type: ignore[no-untyped-def]
    """Starts, sequence and tails of the orders given; whether they run in no cycle."""
    rank, sequence, fresh = rows.rank, times.sequence, times.fresh
    rank[:] = 0
    if not simulate_from(
        shop,
        modes,
        rows.order,
        rows.count,
        rows.place,
        opening,
        times.start,
        sequence,
        rank,
        0,
        0,
        0,
        sequence.shape[0],
        times.new_start,
        fresh,
        times.missing,
    ):
        return False
    rank[:] = ABSENT
    length = rows.count.sum()
    times.clock[LENGTH] = length
    for k in range(length):
        i = fresh[k]
        sequence[k] = i
        rank[i] = k
        times.start[i] = times.new_start[i]
    settle_tails(shop, modes, rows, times, opening, 0, 0, -1, 0, length - 1)
    return True


@inner
def anneal(shop, modes, rows, times, work, groups, opening, how, moves, seed, best, halt):  # type: ignore[no-untyped-def]
    """Anneal the orders in place, `how` with temperatures in ticks; `best` ends as the best met.

    Another thread ends the run early by setting `halt[0]`. Modes are fixed if `modes` is None. Rows of `groups` may be
    exchanged. Returns the best longest time, or -1 if the order given runs in a cycle.
    """
    np.random.seed(seed)
    order, count, place, rank = rows
    d = source = target = one = other = 0
    path, gaps, level = work
    hot, cold, evenness, filling, reach, changing, leaving = how
    if not begin_times(shop, modes, rows, times, opening):
        return -1
    if modes is not None:
        begin(modes)
    for device in range(count.shape[0]):
        fill_levels(shop, rows, level, device, 0)
    least, mean, longest = evaluate(shop, order, count, opening, rank, 0, times.start, times.start)
    takes = given = least
    energy = least_energy = least + evenness * mean
    keep(best, modes, rows)
    critical, waiting = critical_path(shop, modes, order, count, place, times.start, longest, path, gaps)
    for move in range(moves):
        if halt[0]:
            break
        if leaving and move == moves // 2 and least == given:
            least, least_energy = takes, energy
            keep(best, modes, rows)
        exchanging = groups.shape[0] > 1 and np.random.random() < EXCHANGING
        if exchanging:
            one, other = draw_pair(groups)
            exchange(shop, rows, groups[one], groups[other])
            low, high, first, last, end = 0, -1, 0, times.clock[LENGTH] - 1, times.clock[LENGTH]
            fitting = all_fit(shop, rows, level)
        else:
            d, source, target = propose(
                shop, modes, rows, times.start, path, critical, gaps, waiting, reach, filling, changing
            )
            if d < 0:
                continue
            low, high, first, last, end = touched(modes, rows, times, d, source, target)
            fitting = fits_from(shop, rows, level, d, low, high)
        accepted, value, worse, device = False, 0, 0.0, 0
        if fitting:
            allowed = -hot * (cold / hot) ** (move / moves) * math.log(1.0 - np.random.random())
            most = int(takes + allowed)
            if simulate_move(shop, modes, rows, times, opening, d, low, high, first, last, end, most) == SIMULATED:
                value, mean, device = evaluate(shop, order, count, opening, rank, 0, times.new_start, times.new_start)
                worse = value + evenness * mean - energy
                accepted = worse <= allowed
        if not accepted:
            if fitting:
                forget(times)
            if exchanging:
                exchange(shop, rows, groups[one], groups[other])
            else:
                withdraw(shop, modes, rows, d, source, target)
            continue
        settle_in(shop, modes, rows, times, opening, d, low, high, first, last)
        if modes is not None:
            begin(modes)
        if exchanging:
            for device_of in range(count.shape[0]):
                fill_levels(shop, rows, level, device_of, 0)
        else:
            fill_levels(shop, rows, level, d, low)
        energy += worse
        takes = value
        critical, waiting = critical_path(shop, modes, order, count, place, times.start, device, path, gaps)
        if value < least or (value == least and energy < least_energy):
            least, least_energy = value, energy
            keep(best, modes, rows)
    return least


@inner
def anneal_with_modes(shop, modes, rows, *parameters):  # type: ignore[no-untyped-def]
    """`anneal` where modes are open, with machine code of its own: it takes four times as long to compile."""
    return anneal(shop, modes, rows, *parameters)
