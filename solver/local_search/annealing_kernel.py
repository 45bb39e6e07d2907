"""Simulated annealing, compiled: a move is evaluated by simulating what it can change.

`modes` is None where the modes of all passes are fixed. Where the units are jobs, ticks stand for steps, and each
stream counts as a device.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pipesched.compiled import inlined, inner, substituted
from solver.local_search.annealing_run import AnnealingRun
from solver.local_search.arrays import Array, Modes, Move, Rows, Shop, Times
from solver.local_search.exchange import EXCHANGING, draw_pair, exchange
from solver.local_search.incremental_simulation import LENGTH, evaluate, simulate_from
from solver.local_search.memory_levels import all_fit, fill_levels, fits_from
from solver.local_search.mode_edits import begin, carry, undo
from solver.local_search.mode_moves import change_mode
from solver.local_search.modes import ABSENT, FUSED
from solver.local_search.moves import EXCHANGE, NOTHING, critical_path, fill, pick, shift
from solver.local_search.propagation import SIMULATED, forget, settle_in, settle_tails, simulate_move


class Best(NamedTuple):
    """Best orders met and the modes of each operation.

    `order[d, k]` is the unit at place k of the `count[d]` of device d. `mate[n]` is the forward joined to backward n in
    a block (-1: none), `fused[n]` is 1 for a full backward.
    """

    order: Array
    count: Array
    mate: Array
    fused: Array


class Work(NamedTuple):
    """Working arrays: the units of a critical path, in two parts, and the memory in use.

    `path` has those that start when the unit before on their device ends, `gaps` those that wait for another device.
    `level[d, k]` is the memory in use after place k of device d.
    """

    path: Array
    gaps: Array
    level: Array


@inner
def keep(best: Best, modes: Modes | None, rows: Rows) -> None:
    """Copy the current orders and modes to `best`; without `modes` (None) the orders alone.

    Of a device only its `rows.count[d]` units are copied.
    """
    for d in range(rows.count.shape[0]):
        best.count[d] = rows.count[d]
        for k in range(rows.count[d]):
            best.order[d, k] = rows.order[d, k]
    if modes is not None:
        for n in range(modes.mate.shape[0]):
            best.mate[n], best.fused[n] = modes.mate[n], modes.of[n, FUSED]


@substituted
def propose(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    start: Array,
    work: Work,
    critical: int,
    waiting: int,
    how: AnnealingRun,
) -> tuple[int, int, int]:
    """Draw and make one move: change a mode, or move a unit into an idle time or along the critical path.

    Returns the device, and the places that a unit left and went to (0, 0 for a change of mode); `NOTHING` as the device
    if no move was made. `critical` and `waiting` are the lengths of `work.path` and `work.gaps`, `start` is by unit,
    and `how` has the shares of the kinds of moves.
    """
    if modes is not None and np.random.random() < how.changing:
        d = change_mode(shop, modes, rows, work.path, critical, how.reach)
        return (d if modes.log[0, 0] else NOTHING), 0, 0
    if np.random.random() < how.filling:
        d, source, target = fill(shop, rows.order, rows.count, start)
    else:
        path, gaps = work.path, work.gaps
        d, source, target = pick(shop, rows.count, rows.place, path, critical, gaps, waiting, how.reach, how.filling)
    if source == target:
        return NOTHING, 0, 0
    if modes is None:
        shift(shop, rows.order, rows.place, d, source, target)
    else:
        carry(shop, modes, rows, d, source, target)
    return d, source, target


@substituted
def make_move(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    work: Work,
    groups: Array,
    critical: int,
    waiting: int,
    how: AnnealingRun,
) -> Move:
    """Make a random move of any kind and return it as a `Move`, which also says if it fits into memory.

    One kind more than those of `propose` is the exchange of two rows of `groups`, which are units of micro-batches that
    may change places. `critical` and `waiting` are the lengths of `work.path` and `work.gaps`. The new times are not
    yet computed.
    """
    if groups.shape[0] > 1 and np.random.random() < EXCHANGING:
        one, other = draw_pair(groups)
        exchange(shop, rows, groups[one], groups[other])
        length = times.clock[LENGTH]
        return Move(EXCHANGE, one, other, 0, -1, 0, length - 1, length, all_fit(shop, rows, work.level))
    d, source, target = propose(shop, modes, rows, times.start, work, critical, waiting, how)
    if d == NOTHING:
        return Move(NOTHING, 0, 0, 0, 0, 0, 0, 0, False)
    low, high, first, last, end = touched(modes, rows, times, d, source, target)
    fits = fits_from(shop, rows, work.level, d, low, high)
    return Move(d, source, target, low, high, first, last, end, fits)


@inlined
def withdraw(shop: Shop, modes: Modes | None, rows: Rows, groups: Array, move: Move) -> None:
    """Undo a move in the orders and modes; times are not changed.

    `groups` has in a row the units of a chain, two of which an exchange moves.
    """
    if move.d == EXCHANGE:
        exchange(shop, rows, groups[move.source], groups[move.target])
    elif modes is None:
        shift(shop, rows.order, rows.place, move.d, move.target, move.source)
    else:
        undo(shop, modes, rows)


@inlined
def settle_move(
    shop: Shop, modes: Modes | None, rows: Rows, times: Times, work: Work, opening: Array, move: Move
) -> None:
    """Accept a simulated move: make its times and memory levels the current ones, and clear the log of mode edits.

    `opening` has by device the tick before which it does not start.
    """
    settle_in(shop, modes, rows, times, opening, move)
    if modes is not None:
        begin(modes)
    if move.d != EXCHANGE:
        fill_levels(shop, rows, work.level, move.d, move.low)
        return
    for d in range(rows.count.shape[0]):
        fill_levels(shop, rows, work.level, d, 0)


@inlined
def touched(
    modes: Modes | None, rows: Rows, times: Times, d: int, source: int, target: int
) -> tuple[int, int, int, int, int]:
    """Return (lowest place, highest place, lowest rank, highest rank, length) of a move's units on device `d`.

    Ranks are places in the topological sequence, and the length is the sequence's length; units that had no place
    before the move are appended to it here. A unit went from place `source` to `target`; with `modes` (not None) the
    range includes all edits of the move.
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
def begin_times(shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array) -> bool:
    """Compute starts, topological sequence and tails of the given orders; False if they contain a cycle.

    `opening` has by device the tick before which it does not start. `times` and `rows.rank` are filled.
    """
    rank, sequence, fresh = rows.rank, times.sequence, times.fresh
    rank[:] = 0
    if not simulate_from(shop, modes, rows, times, opening, sequence, 0, 0, 0, sequence.shape[0]):
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


@substituted
def _annealed(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    work: Work,
    groups: Array,
    opening: Array,
    how: AnnealingRun,
    moves: int,
    seed: int,
    best: Best,
    halt: Array,
) -> int:
    """Anneal orders, and modes unless None, in place; return the least value met, -1 if the given orders have a cycle.

    Compiled as `anneal` for fixed modes and as `anneal_with_modes` for open ones. At most `moves` moves; `best`
    receives the orders and modes of the least value, the longest time of a device from its `opening`. `how` has the
    temperatures; the value, these and `opening` are in ticks, in steps where the units are jobs. Units of two rows of
    `groups` may change places. Another thread ends the run early by setting `halt[0]`; `seed` is that of the random
    numbers.
    """
    np.random.seed(seed)
    path, gaps, level = work
    if not begin_times(shop, modes, rows, times, opening):
        return -1
    if modes is not None:
        begin(modes)
    for device in range(rows.count.shape[0]):
        fill_levels(shop, rows, level, device, 0)
    least, mean, longest = evaluate(shop, rows, times, opening, 0)
    takes = given = least
    energy = least_energy = least + how.evenness * mean
    keep(best, modes, rows)
    critical, waiting = critical_path(shop, modes, rows, times.start, longest, path, gaps)
    for n in range(moves):
        if halt[0]:
            break
        if how.leaving and n == moves // 2 and least == given:
            least, least_energy = takes, energy
            keep(best, modes, rows)
        move = make_move(shop, modes, rows, times, work, groups, critical, waiting, how)
        if move.d == NOTHING:
            continue
        accepted, value, worse, device = False, 0, 0.0, 0
        if move.fits:
            allowed = -how.hot * (how.cold / how.hot) ** (n / moves) * math.log(1.0 - np.random.random())
            if simulate_move(shop, modes, rows, times, opening, move, int(takes + allowed)) == SIMULATED:
                value, mean, device = evaluate(shop, rows, times, opening, 0)
                worse = value + how.evenness * mean - energy
                accepted = worse <= allowed
        if not accepted:
            if move.fits:
                forget(times)
            withdraw(shop, modes, rows, groups, move)
            continue
        settle_move(shop, modes, rows, times, work, opening, move)
        energy += worse
        takes = value
        critical, waiting = critical_path(shop, modes, rows, times.start, device, path, gaps)
        if value < least or (value == least and energy < least_energy):
            least, least_energy = value, energy
            keep(best, modes, rows)
    return least


@inner
def anneal(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    work: Work,
    groups: Array,
    opening: Array,
    how: AnnealingRun,
    moves: int,
    seed: int,
    best: Best,
    halt: Array,
) -> int:
    """Anneal the orders in place by at most `moves` moves; `best` receives the best orders met.

    `how` has temperatures in ticks and shares of moves, `seed` that of the random numbers. Another thread ends the run
    early by setting `halt[0]`. Modes are fixed: `modes` is None. Units of two rows of `groups` may change places.
    `opening` has by device the tick (step where the units are jobs) before which it does not start. Returns the least
    value met, which is the longest time of a device from its opening, in ticks (in steps where the units are jobs); -1
    if the given order contains a cycle. If the first half of the moves under `how.leaving` finds nothing better, only
    the second half counts.
    """
    return _annealed(shop, modes, rows, times, work, groups, opening, how, moves, seed, best, halt)


@inner
def anneal_with_modes(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    work: Work,
    groups: Array,
    opening: Array,
    how: AnnealingRun,
    moves: int,
    seed: int,
    best: Best,
    halt: Array,
) -> int:
    """Anneal the orders and modes in place: backwards may be split or fused, and blocks formed or dissolved.

    `modes` is not None. At most `moves` moves; `best` receives the best orders and modes met, and the least value met
    is returned: the longest time of a device from its `opening`, in ticks, or -1 if the given order contains a cycle.
    Another thread ends the run early by setting `halt[0]`. Units of two rows of `groups` may change places; `how` has
    temperatures in ticks and shares of moves, `seed` is that of the random numbers. A function of its own, since it
    takes three times as long to compile as `anneal`, and most problems have no open modes.
    """
    return _annealed(shop, modes, rows, times, work, groups, opening, how, moves, seed, best, halt)
