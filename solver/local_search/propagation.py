"""Simulation of one move, compiled: the order around it is simulated again, then only units whose start changes.

The topological `sequence` has units of rank `first` to `last` where the move made a difference: everything it placed is
there, so that the others keep their ranks. Starts are propagated from there to their successors. *Tails*, the longest
path from a unit's end to the end of a device less the opening of that device, are propagated backwards once the move is
accepted: until then they give for every later unit a lower bound on the longest device. `modes` is None where the modes
of all passes are fixed; `opening` has by device the tick before which it does not start. Where the units are jobs,
ticks stand for steps, and each stream counts as a device.
"""

from __future__ import annotations

from pipesched.compiled import inlined, inner
from solver.local_search.arrays import Array, Modes, Move, Rows, Shop, Times
from solver.local_search.incremental_simulation import CHANGED, FRESH, LENGTH, STAMP, simulate_from
from solver.local_search.modes import ABSENT

# Results of a simulation.
CYCLE, TOO_LONG, SIMULATED = range(3)


@inlined
def gather(times: Times, place: Array, move: Move) -> int:
    """Write the placed units that a move touched, all of whose starts may change, to `times.changed`.

    Return their number. These units are those of rank `move.first` to `move.last` in the topological sequence, and
    those that had no place before, which are at its end. `place` is by unit, -1 for none.
    """
    units = 0
    for k in range(move.first, move.last + 1):
        if place[times.sequence[k]] >= 0:
            times.changed[units] = times.sequence[k]
            units += 1
    for k in range(times.clock[LENGTH], move.end):
        times.changed[units] = times.sequence[k]
        units += 1
    times.clock[CHANGED] = times.clock[FRESH] = units
    return units


@inlined
def simulate_move(
    shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array, move: Move, most: int
) -> int:
    """Compute the starts after a move in `times.new_start`, in ticks; return `CYCLE`, `TOO_LONG` or `SIMULATED`.

    It stops as too long once some device is known to take more than `most` ticks from its opening. `opening` has by
    device the tick before which it does not start.
    """
    units = gather(times, rows.place, move)
    if not simulate_from(shop, modes, rows, times, opening, times.changed, move.first, move.last, 0, units):
        return CYCLE
    return pass_on(shop, modes, rows, times, opening, move, most)


@inlined
def pass_on(shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array, move: Move, most: int) -> int:
    """Compute the starts of units after those that the move touched, if they change, in the order of the sequence.

    A unit is computed only if one of its predecessors has changed. `opening` has by device the tick before which it
    does not start. Returns `TOO_LONG` once a device is known to take more than `most` ticks, else `SIMULATED`.
    """
    d, low, high, last = move.d, move.low, move.high, move.last
    place, start, new_start, fresh, changed = rows.place, times.start, times.new_start, times.fresh, times.changed
    times.clock[STAMP] += 1
    stamp, found = times.clock[STAMP], times.clock[CHANGED]
    reach = last
    for n in range(times.clock[FRESH]):
        i = fresh[n]
        if new_start[i] != start[i] or (shop.device[i] == d and low <= place[i] <= high):
            reach = mark_after(shop, modes, rows, times, i, last, reach)
    k = last
    while k < reach:
        k += 1
        if times.marked[k] != stamp:
            continue
        i = times.sequence[k]
        begun = begin_of(shop, modes, rows, times, opening, i)
        if begun + shop.ticks[i] + times.tail[i] > most:
            times.clock[CHANGED] = found
            return TOO_LONG
        if begun != start[i]:
            new_start[i] = begun
            changed[found] = i
            found += 1
            reach = mark_after(shop, modes, rows, times, i, last, reach)
    times.clock[CHANGED] = found
    return SIMULATED


@inlined
def neighbour(shop: Shop, rows: Rows, i: int, step: int) -> int:
    """Return the unit `step` (1 or -1) places after unit `i` in its device's order, -1 if there is none."""
    device, place = shop.device[i], rows.place[i] + step
    return rows.order[device, place] if 0 <= place < rows.count[device] else -1


@inlined
def longest_path_to(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    i: int,
    near: int,
    at: Array,
    units: Array,
    lags: Array,
    longest: Array,
    length: int,
) -> int:
    """Return the longest path to unit `i` from one side, by its neighbour `near` or its arcs, in ticks.

    It is at least `length`. The side is predecessors (for starts) or successors (for tails). `near` is the unit next to
    it there in its device's order, -1 for none. The arcs of unit n are at `at[n]` to `at[n + 1]` - 1 in `units` and
    `lags`, and `longest` has the longest path to each unit. Arcs of operations joined to the unit count, too, if there
    are modes.
    """
    if near >= 0:
        length = max(length, longest[near] + shop.ticks[near])
    unit = i
    while unit >= 0:
        for a in range(at[unit], at[unit + 1]):
            j = units[a]
            if rows.place[j] >= 0:
                length = max(length, longest[j] + shop.ticks[j] + lags[a])
        if modes is None:
            break
        unit = modes.mate[unit]
    return length


@inlined
def mark(
    modes: Modes | None,
    rows: Rows,
    times: Times,
    i: int,
    near: int,
    at: Array,
    units: Array,
    low: int,
    high: int,
    step: int,
    reach: int,
) -> int:
    """Mark a unit's neighbour `near` and the units of its arcs on one side of rank above `low` and below `high`.

    Marked units are computed again. Returns the last rank marked in the direction of `step` (1 or -1), or `reach` if
    that lies further. `near` is -1 for none; the arcs of unit n lead to `units[at[n]:at[n + 1]]`. A rank is a place in
    the topological sequence.
    """
    rank, marked, stamp = rows.rank, times.marked, times.clock[STAMP]
    if near >= 0:
        r = rank[near]
        if low < r < high:
            marked[r] = stamp
            reach = step * max(step * reach, step * r)
    unit = i
    while unit >= 0:
        for a in range(at[unit], at[unit + 1]):
            r = rank[units[a]]
            if low < r < high:
                marked[r] = stamp
                reach = step * max(step * reach, step * r)
        if modes is None:
            break
        unit = modes.mate[unit]
    return reach


@inlined
def begin_of(shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array, i: int) -> int:
    """Return the earliest start of unit `i` in ticks, after all its predecessors by their new starts.

    It is not before the `opening` of its device.
    """
    near, begun = neighbour(shop, rows, i, -1), opening[shop.device[i]]
    at, units, lags = shop.waits_at, shop.waits_for, shop.waits_lag
    return longest_path_to(shop, modes, rows, i, near, at, units, lags, times.new_start, begun)


@inlined
def tail_of(shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array, i: int) -> int:
    """Return the tail of unit `i` in ticks.

    That is the longest path from its end to the end of a device, less the opening of that device.
    """
    near, least = neighbour(shop, rows, i, 1), -opening[shop.device[i]]
    at, units, lags = shop.feeds_at, shop.feeds_to, shop.feeds_lag
    return longest_path_to(shop, modes, rows, i, near, at, units, lags, times.tail, least)


@inlined
def mark_after(shop: Shop, modes: Modes | None, rows: Rows, times: Times, i: int, last: int, reach: int) -> int:
    """Mark the successors of unit `i` whose rank is above `last`, as units whose start may change.

    A rank is a place in the topological sequence. Returns the highest rank marked, or `reach` if that is higher.
    """
    near = neighbour(shop, rows, i, 1)
    return mark(modes, rows, times, i, near, shop.feeds_at, shop.feeds_to, last, ABSENT, 1, reach)


@inlined
def mark_before(shop: Shop, modes: Modes | None, rows: Rows, times: Times, i: int, first: int, reach: int) -> int:
    """Mark the predecessors of unit `i` whose rank is below `first`, as units whose tail may change.

    A rank is a place in the topological sequence. Returns the lowest rank marked, or `reach` if that is lower.
    """
    near = neighbour(shop, rows, i, -1)
    return mark(modes, rows, times, i, near, shop.waits_at, shop.waits_for, -1, first, -1, reach)


@inlined
def forget(times: Times) -> None:
    """Set the new starts of changed units to those before the move, which is rejected and to be undone."""
    start, new_start, changed = times.start, times.new_start, times.changed
    for k in range(times.clock[CHANGED]):
        i = changed[k]
        new_start[i] = start[i]


@inlined
def settle_in(shop: Shop, modes: Modes | None, rows: Rows, times: Times, opening: Array, move: Move) -> None:
    """Accept the simulated move: update sequence, ranks, starts, and the tails of all units that it changes.

    `opening` has by device the tick before which it does not start.
    """
    first, last = move.first, move.last
    rank, place, sequence, fresh = rows.rank, rows.place, times.sequence, times.fresh
    start, new_start, changed = times.start, times.new_start, times.changed
    for k in range(times.clock[CHANGED]):
        i = changed[k]
        start[i] = new_start[i]
    renewed, length = times.clock[FRESH], times.clock[LENGTH]
    longer = renewed - (last - first + 1)
    for k in range(first, last + 1):
        if place[sequence[k]] < 0:
            rank[sequence[k]] = ABSENT
    if longer > 0:
        for k in range(length - 1, last, -1):
            sequence[k + longer] = sequence[k]
            rank[sequence[k]] = k + longer
    elif longer < 0:
        for k in range(last + 1, length):
            sequence[k + longer] = sequence[k]
            rank[sequence[k]] = k + longer
    times.clock[LENGTH] = length + longer
    for k in range(renewed):
        sequence[first + k] = fresh[k]
        rank[fresh[k]] = first + k
    settle_tails(shop, modes, rows, times, opening, move.d, move.low, move.high, first, first + renewed - 1)


@inner
def settle_tails(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    opening: Array,
    d: int,
    low: int,
    high: int,
    first: int,
    last: int,
) -> None:
    """Compute the tails of units of rank `last` down to `first`, and of earlier units whose tail changes thereby.

    Units at places `low` to `high` of device `d` have other neighbours, so those before them are computed in any case.
    A tail is the longest path in ticks from a unit's end to that of a device, less the opening of that device.
    """
    place, tail, sequence, marked = rows.place, times.tail, times.sequence, times.marked
    times.clock[STAMP] += 1
    stamp, reach, k = times.clock[STAMP], first, last + 1
    while k > reach:
        k -= 1
        if k < first and marked[k] != stamp:
            continue
        i = sequence[k]
        unit_tail = tail_of(shop, modes, rows, times, opening, i)
        if unit_tail != tail[i] or (k >= first and shop.device[i] == d and low <= place[i] <= high):
            tail[i] = unit_tail
            reach = mark_before(shop, modes, rows, times, i, first, reach)
