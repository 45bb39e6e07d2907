"""Annealing for less memory or for a smaller mean under random durations, compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pipesched.compiled import inlined, inner
from solver.local_search.arrays import Array, Move, Rows, Shop, Times
from solver.local_search.incremental_simulation import evaluate, simulate_from
from solver.local_search.moves import NOTHING, critical_path, fill, pick, shift
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class EqualValueMoveParams:
    """Share of moves of any length in the search within a limit on the value.

    `far` is that share.
    """

    far: float = tuned(0.2, "of moves, of any length; the others are short", 0, 1)


_FAR_MOVES = EqualValueMoveParams().far


class Goal(NamedTuple):
    """Quantity to minimise: the mean value over samples of durations or, without samples, the `memory_energy`.

    `ticks[n, k]` is the duration of unit n in sample k, `idle_until[d]` the time until which row d of the orders idles
    in every sample. With `span`, times count from a device's first start; `owner[d]` is the device that row d of the
    orders belongs to, and rows of one device are adjacent. `weights[d]` multiplies the memory of row d; the
    `memory_energy` is the largest weighted peak, with small shares of the means. Without noise no device may take more
    than `most` from its opening (-1: no limit). All times are in steps of the units.
    """

    ticks: Array
    idle_until: Array
    owner: Array
    span: bool
    most: int
    weights: Array


class Heat(NamedTuple):
    """Temperatures of the first (`hot`) and last move (`cold`), in units of the energy, and parameters of moves.

    `filling` is the share of moves that bring a unit into an idle time. In most others a unit jumps over at most
    `reach` units; in a fixed share of them (`EqualValueMoveParams.far`) over any number.
    """

    hot: float
    cold: float
    reach: int
    filling: float


class Work(NamedTuple):
    """Working arrays: ends of units in every sample, shape (units, samples), now (`end`) and with a move (`new_end`).

    `path` has the units of a critical path that start when the unit before on their device ends, `gaps` those that wait
    for another device.
    """

    end: Array
    new_end: Array
    path: Array
    gaps: Array


@inner
def delay(work: Work, i: int, before: int, lag: int, rank: Array, first: int) -> None:
    """Raise `new_end[i]`, at this time the start of unit i, to `lag` after the end of unit `before`, in every sample.

    Times are in steps of the units. A unit whose rank in the topological sequence is below `first` still ends at `end`,
    others at `new_end`.
    """
    end, new_end, old = work.end, work.new_end, rank[before] < first
    for s in range(new_end.shape[1]):
        new_end[i, s] = max(new_end[i, s], (end[before, s] if old else new_end[before, s]) + lag)


@inner
def sample_from(shop: Shop, rows: Rows, work: Work, goal: Goal, sequence: Array, first: int) -> None:
    """Compute `new_end`, in every sample of durations, of the units at `sequence[first:]`; earlier ones keep `end`.

    `sequence` is topological. Everything starts as soon as the order allows, and the lags are the same in every sample.
    """
    place, rank, new_end, samples = rows.place, rows.rank, work.new_end, goal.ticks.shape[1]
    for k in range(first, sequence.shape[0]):
        i = sequence[k]
        d = shop.device[i]
        for s in range(samples):
            new_end[i, s] = goal.idle_until[d] if place[i] == 0 else 0.0
        if place[i] > 0:
            delay(work, i, rows.order[d, place[i] - 1], 0, rank, first)
        for a in range(shop.waits_at[i], shop.waits_at[i + 1]):
            delay(work, i, shop.waits_for[a], shop.waits_lag[a], rank, first)
        for s in range(samples):
            new_end[i, s] += goal.ticks[i, s]


@inner
def mean_value(rows: Rows, work: Work, goal: Goal, first: int) -> float:
    """Return the mean over samples of the latest end or, with `goal.span`, of the longest span of a device, in steps.

    Units whose rank in the topological sequence is `first` or more end at `new_end`, others at `end`.
    """
    ticks, rank, end, new_end = goal.ticks, rows.rank, work.end, work.new_end
    total = 0.0
    for s in range(ticks.shape[1]):
        worst, owner, begins, ends = 0.0, -1, 0.0, 0.0
        for d in range(rows.count.shape[0]):
            if rows.count[d] == 0:
                continue
            i, last = rows.order[d, 0], rows.order[d, rows.count[d] - 1]
            ended = new_end[last, s] if rank[last] >= first else end[last, s]
            began = (new_end[i, s] if rank[i] >= first else end[i, s]) - ticks[i, s] if goal.span else 0.0
            if goal.owner[d] == owner:
                begins, ends = min(begins, began), max(ends, ended)
            else:
                owner, begins, ends = goal.owner[d], began, ended
            worst = max(worst, ends - begins)
        total += worst
    return total / ticks.shape[1]


@inner
def peak_and_mean(shop: Shop, order: Array, count: Array, d: int) -> tuple[int, float]:
    """Return the peak memory of device `d`, and the mean over its units of the memory in use while each runs.

    `order[d, :count[d]]` are its units. The mean does not weight units by their durations.
    """
    level, peak, total = 0, 0, 0.0
    for k in range(count[d]):
        i = order[d, k]
        level += shop.takes[i]
        peak = max(peak, level)
        total += level
        level -= shop.gives[i]
    return peak, total / max(1, count[d])


@inner
def memory_energy(shop: Shop, order: Array, count: Array, weights: Array) -> float:
    """Return the energy of orders in a search for less memory: the largest peak, with small shares of the others.

    That is the largest weighted peak of a device, plus 1/4 of the mean peak and 1/64 of the mean memory of all devices.
    `weights` multiply the memory of each device; its units are `order[d, :count[d]]`.
    """
    worst, peaks, means = 0.0, 0.0, 0.0
    for d in range(count.shape[0]):
        peak, mean = peak_and_mean(shop, order, count, d)
        worst = max(worst, peak * weights[d])
        peaks += peak * weights[d]
        means += mean * weights[d]
    return worst + (peaks / 4 + means / 64) / count.shape[0]


@inlined
def draw_move(shop: Shop, rows: Rows, times: Times, work: Work, critical: int, waiting: int, heat: Heat) -> Move:
    """Draw and make a random move; return it as a `Move`, which also says if it fits into its device's memory.

    A unit goes into an idle time, or along the critical path. Of the units of that path, `work.path[:critical]` start
    when the unit before on their device ends, and `work.gaps[:waiting]` wait for another device. The device of the
    result is `NOTHING` if no move was made.
    """
    order, count, place = rows.order, rows.count, rows.place
    if np.random.random() < heat.filling:
        d, source, target = fill(shop, order, count, times.start)
    else:
        d, source, target = pick(shop, count, place, work.path, critical, work.gaps, waiting, heat.reach, _FAR_MOVES)
    if source == target:
        return Move(NOTHING, 0, 0, 0, 0, 0, 0, 0, False)
    shift(shop, order, place, d, source, target)
    low, high, last = min(source, target), max(source, target), shop.ticks.shape[0]
    first = last
    for k in range(low, high + 1):
        first = min(first, rows.rank[order[d, k]])
    return Move(d, source, target, low, high, first, last, last, fits(shop, rows, d))


@inlined
def fits(shop: Shop, rows: Rows, d: int) -> bool:
    """True if memory along row `d` of the orders, as its units take and give back, never exceeds `capacity[d]`.

    A row is the order of a device or of one of its streams; a negative capacity is no limit.
    """
    return shop.capacity[d] < 0 or peak_and_mean(shop, rows.order, rows.count, d)[0] <= shop.capacity[d]


@inlined
def rate(
    shop: Shop, rows: Rows, times: Times, work: Work, opening: Array, goal: Goal, first: int
) -> tuple[bool, float, int]:
    """Return (allowed, energy, longest device) of the orders; they are allowed if acyclic and within the goal's limit.

    The energy is what the search minimises: the mean value over samples, in steps, or without samples the
    `memory_energy`; it and the device are 0 if the orders are not allowed. Units whose rank in the topological sequence
    is below `first` keep their times; the others get `new_start` and `new_end`. `opening` has by row of the orders the
    time, in steps of the units, before which it does not start.
    """
    n = shop.ticks.shape[0]
    if not simulate_from(shop, None, rows, times, opening, times.sequence, first, n, first, n):
        return False, 0.0, 0
    value, _, longest = evaluate(shop, rows, times, opening, first)
    if 0 <= goal.most < value:
        return False, 0.0, 0
    if goal.ticks.shape[1] == 0:
        return True, memory_energy(shop, rows.order, rows.count, goal.weights), longest
    sample_from(shop, rows, work, goal, times.fresh, first)
    return True, mean_value(rows, work, goal, first), longest


@inlined
def settle_in(rows: Rows, times: Times, work: Work, first: int) -> None:
    """Accept a move: make the simulated times and sequence from rank `first` on the current ones.

    A rank is a place in the topological sequence.
    """
    for k in range(first, times.sequence.shape[0]):
        i = times.fresh[k]
        times.sequence[k] = i
        rows.rank[i] = k
        times.start[i] = times.new_start[i]
        for s in range(work.end.shape[1]):
            work.end[i, s] = work.new_end[i, s]


@inner
def keep(best: Array, rows: Rows) -> None:
    """Copy the units of each row of `rows.order` to `best`, an array of the same shape (devices, places).

    Only the first `rows.count[d]` places of row d are written.
    """
    for d in range(rows.count.shape[0]):
        for k in range(rows.count[d]):
            best[d, k] = rows.order[d, k]


@inner
def settle(
    shop: Shop,
    rows: Rows,
    times: Times,
    work: Work,
    opening: Array,
    goal: Goal,
    heat: Heat,
    moves: int,
    seed: int,
    best: Array,
    halt: Array,
) -> float:
    """Anneal the orders in place for a lower energy, by at most `moves` moves; `best` receives the best order met.

    The energy is what `goal` minimises: memory, or the mean value over samples of durations; `heat` has the
    temperatures. No order is accepted that breaks the goal's limit on the value or a capacity. Another thread ends the
    run early by setting `halt[0]`; `seed` is that of the random numbers. Returns the least energy; -1 if the given
    order has a cycle or breaks such a limit. `opening` has by row of the orders the time, in steps of the units, before
    which it does not start.
    """
    np.random.seed(seed)
    for d in range(rows.count.shape[0]):
        if not fits(shop, rows, d):
            return -1.0
    runs, energy, longest = rate(shop, rows, times, work, opening, goal, 0)
    if not runs:
        return -1.0
    settle_in(rows, times, work, 0)
    keep(best, rows)
    least, critical, waiting, by_mean = energy, 0, 0, goal.ticks.shape[1] > 0
    if by_mean:
        critical, waiting = critical_path(shop, None, rows, times.start, longest, work.path, work.gaps)
    for n in range(moves):
        if halt[0]:
            break
        move = draw_move(shop, rows, times, work, critical, waiting, heat)
        if move.d == NOTHING:
            continue
        accepted, found = False, 0.0
        if move.fits:
            accepted, found, longest = rate(shop, rows, times, work, opening, goal, move.first)
        if accepted and found > energy:
            temperature = heat.hot * (heat.cold / heat.hot) ** (n / moves)
            accepted = np.random.random() < math.exp((energy - found) / temperature)
        if not accepted:
            shift(shop, rows.order, rows.place, move.d, move.target, move.source)
            continue
        settle_in(rows, times, work, move.first)
        energy = found
        if by_mean:
            critical, waiting = critical_path(shop, None, rows, times.start, longest, work.path, work.gaps)
        if energy < least:
            least = energy
            keep(best, rows)
    return least
