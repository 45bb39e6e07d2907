"""Simulation of one move, compiled: the order around it anew, and then only units whose start does change.

The topological `sequence` has units of rank `first` to `last` where the move made a difference: all that it gave a new
place lies there, so that the others keep their ranks. Starts are passed on from there to what waits for them, and
*tails*, the longest way from a unit's end to the end of all, the other way once the move is made: until then they
tell of every unit behind what the longest device takes at least.
"""

from __future__ import annotations

from solver.backends.compiled import inlined, inner
from solver.local_search.incremental_simulation import CHANGED, FRESH, LENGTH, STAMP, simulate_from
from solver.local_search.modes import ABSENT

# What a simulation ended with.
CYCLE, TOO_LONG, SIMULATED = range(3)


@inlined
def gather(times, place, move):  # type: ignore[no-untyped-def]
    """How many units a move touched that have a place, and got one. All of them may change."""
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
def simulate_move(shop, modes, rows, times, opening, move, most):  # type: ignore[no-untyped-def]
    """The starts after a move, in `new_start`; ends once any way takes more than `most`."""
    units = gather(times, rows.place, move)
    if not simulate_from(shop, modes, rows, times, opening, times.changed, move.first, move.last, 0, units):
        return CYCLE
    return pass_on(shop, modes, rows, times, opening, move, most)


@inlined
def pass_on(shop, modes, rows, times, opening, move, most):  # type: ignore[no-untyped-def]
    """The starts of what is behind the move's last rank and waits for what has changed, in the sequence's order."""
    d, low, high, last = move.d, move.low, move.high, move.last
    place, start, new_start, fresh, changed = rows.place, times.start, times.new_start, times.fresh, times.changed
    times.clock[STAMP] += 1
    stamp, found = times.clock[STAMP], times.clock[CHANGED]
    reach = last
    for n in range(times.clock[FRESH]):
        i = fresh[n]
        if new_start[i] != start[i] or (shop.device[i] == d and low <= place[i] <= high):
            reach = mark_behind(shop, modes, rows, times, i, last, reach)
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
            reach = mark_behind(shop, modes, rows, times, i, last, reach)
    times.clock[CHANGED] = found
    return SIMULATED


@inlined
def begin_of(shop, modes, rows, times, opening, i):  # type: ignore[no-untyped-def]
    """The earliest start of a unit behind all that it waits for, by their new starts."""
    new_start = times.new_start
    begun = opening[shop.device[i]]
    if rows.place[i] > 0:
        before = rows.order[shop.device[i], rows.place[i] - 1]
        begun = max(begun, new_start[before] + shop.ticks[before])
    unit = i
    while unit >= 0:
        for a in range(shop.waits_at[unit], shop.waits_at[unit + 1]):
            before = shop.waits_for[a]
            begun = max(begun, new_start[before] + shop.ticks[before] + shop.waits_lag[a])
        if modes is None:
            break
        unit = modes.mate[unit]
    return begun


@inlined
def mark_behind(shop, modes, rows, times, i, last, reach):  # type: ignore[no-untyped-def]
    """Mark what waits for a unit and has a rank above `last`; the highest rank marked, or `reach` if that is higher."""
    rank, marked, stamp, on = rows.rank, times.marked, times.clock[STAMP], shop.device[i]
    behind = rows.place[i] + 1
    if behind < rows.count[on]:
        r = rank[rows.order[on, behind]]
        if last < r < ABSENT:
            marked[r] = stamp
            reach = max(reach, r)
    unit = i
    while unit >= 0:
        for a in range(shop.feeds_at[unit], shop.feeds_at[unit + 1]):
            r = rank[shop.feeds_to[a]]
            if last < r < ABSENT:
                marked[r] = stamp
                reach = max(reach, r)
        if modes is None:
            break
        unit = modes.mate[unit]
    return reach


@inlined
def mark_before(shop, modes, rows, times, i, first, reach):  # type: ignore[no-untyped-def]
    """Mark what a unit waits for and has a rank below `first`; the lowest rank marked, or `reach` if that is lower."""
    rank, marked, stamp = rows.rank, times.marked, times.clock[STAMP]
    if rows.place[i] > 0:
        r = rank[rows.order[shop.device[i], rows.place[i] - 1]]
        if r < first:
            marked[r] = stamp
            reach = min(reach, r)
    unit = i
    while unit >= 0:
        for a in range(shop.waits_at[unit], shop.waits_at[unit + 1]):
            r = rank[shop.waits_for[a]]
            if r < first:
                marked[r] = stamp
                reach = min(reach, r)
        if modes is None:
            break
        unit = modes.mate[unit]
    return reach


@inlined
def forget(times):  # type: ignore[no-untyped-def]
    """Let starts be what they were before the move."""
    start, new_start, changed = times.start, times.new_start, times.changed
    for k in range(times.clock[CHANGED]):
        i = changed[k]
        new_start[i] = start[i]


@inlined
def settle_in(shop, modes, rows, times, opening, move):  # type: ignore[no-untyped-def]
    """Let the move be made: sequence, ranks, starts, and the tails of all that is before what it changed."""
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
def settle_tails(shop, modes, rows, times, opening, d, low, high, first, last):  # type: ignore[no-untyped-def]
    """The tails of all from rank `last` down to `first`, and of what is before and has another one then."""
    place, tail, sequence, marked = rows.place, times.tail, times.sequence, times.marked
    times.clock[STAMP] += 1
    stamp, reach, k = times.clock[STAMP], first, last + 1
    while k > reach:
        k -= 1
        if k < first and marked[k] != stamp:
            continue
        i = sequence[k]
        way = way_behind(shop, modes, rows, times, opening, i)
        if way != tail[i] or (k >= first and shop.device[i] == d and low <= place[i] <= high):
            tail[i] = way
            reach = mark_before(shop, modes, rows, times, i, first, reach)


@inlined
def way_behind(shop, modes, rows, times, opening, i):  # type: ignore[no-untyped-def]
    """The longest way from a unit's end to the end of all, less its device's opening, by the tails of what waits."""
    ticks, tail, on = shop.ticks, times.tail, shop.device[i]
    behind = rows.place[i] + 1
    way = -opening[on]
    if behind < rows.count[on]:
        j = rows.order[on, behind]
        way = ticks[j] + tail[j]
    unit = i
    while unit >= 0:
        for a in range(shop.feeds_at[unit], shop.feeds_at[unit + 1]):
            j = shop.feeds_to[a]
            if rows.place[j] >= 0:
                way = max(way, shop.feeds_lag[a] + ticks[j] + tail[j])
        if modes is None:
            break
        unit = modes.mate[unit]
    return way
