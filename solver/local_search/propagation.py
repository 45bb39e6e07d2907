"""Simulation of one move, compiled: the order around it anew, and then only units whose start does change.

The topological `sequence` has units of rank `first` to `last` where the move made a difference: all that it gave a new
place lies there, so that the others keep their ranks. Starts are passed on from there to what waits for them, and
*tails*, the longest way from a unit's end to the end of all, the other way once the move is made: until then they
tell of every unit behind what the longest device takes at least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from solver.backends.compiled import inner
from solver.local_search.incremental_simulation import simulate_from
from solver.local_search.modes import ABSENT
from solver.local_search.moves import Array

# What a simulation ended with.
CYCLE, TOO_LONG, SIMULATED = range(3)


class Times(NamedTuple):
    """Starts and tails of the schedule at hand, the sequence, and what a simulation needs by the way.

    `new_start` is `start` but while a move is simulated; `changed` holds the units for which it is not, `marked[k]`
    the number of the simulation that came to rank k. `clock` holds that number, how many have changed, how many the
    sequence and its new part hold.
    """

    start: Array
    new_start: Array
    tail: Array
    sequence: Array
    fresh: Array
    missing: Array
    changed: Array
    marked: Array
    clock: Array


STAMP, CHANGED, LENGTH, FRESH = range(4)


def times_of(units: int) -> Times:
    """Room for so many units."""
    arrays = [np.zeros(units, np.int64) for _ in range(8)]
    return Times._make([*arrays, np.zeros(4, np.int64)])._replace(sequence=np.arange(units))


@inner
def gather(times, place, first, last, end):  # type: ignore[no-untyped-def]
    """How many units have these ranks and a place, or got one: up to `end` of the sequence. All of them may change."""
    units = 0
    for k in range(first, last + 1):
        if place[times.sequence[k]] >= 0:
            times.changed[units] = times.sequence[k]
            units += 1
    for k in range(times.clock[LENGTH], end):
        times.changed[units] = times.sequence[k]
        units += 1
    times.clock[CHANGED] = times.clock[FRESH] = units
    return units


@inner
def simulate_move(shop, modes, rows, times, opening, d, low, high, first, last, end, most):  # type: ignore[no-untyped-def]
    """The starts after a move to places `low` to `high` of device d, in `new_start`; ends once any way takes > `most`.

    `end` is behind what the move gave a place, which stands behind the sequence.
    """
    ticks, device, feeds_at, feeds_to = shop.ticks, shop.device, shop.feeds_at, shop.feeds_to
    waits_at, waits_for, waits_lag = shop.waits_at, shop.waits_for, shop.waits_lag
    order, count, place, rank = rows.order, rows.count, rows.place, rows.rank
    start, new_start, tail, sequence = times.start, times.new_start, times.tail, times.sequence
    fresh, changed, marked = times.fresh, times.changed, times.marked
    units = gather(times, place, first, last, end)
    if not simulate_from(
        shop,
        modes,
        order,
        count,
        place,
        opening,
        start,
        changed,
        rank,
        first,
        last,
        0,
        units,
        new_start,
        fresh,
        times.missing,
    ):
        return CYCLE
    times.clock[STAMP] += 1
    stamp, found, renewed = times.clock[STAMP], times.clock[CHANGED], times.clock[FRESH]
    reach, n = last, 0
    k = last + 1
    while n < renewed or k <= reach:
        if n < renewed:
            i = fresh[n]
            n += 1
            on = device[i]
            differs = new_start[i] != start[i] or (on == d and low <= place[i] <= high)
        else:
            k += 1
            if marked[k - 1] != stamp:
                continue
            i = sequence[k - 1]
            on = device[i]
            begun = opening[on]
            if place[i] > 0:
                before = order[on, place[i] - 1]
                begun = max(begun, new_start[before] + ticks[before])
            unit = i
            while unit >= 0:
                for a in range(waits_at[unit], waits_at[unit + 1]):
                    before = waits_for[a]
                    begun = max(begun, new_start[before] + ticks[before] + waits_lag[a])
                if modes is None:
                    break
                unit = modes.mate[unit]
            if begun + ticks[i] + tail[i] > most:
                times.clock[CHANGED] = found
                return TOO_LONG
            differs = begun != start[i]
            if differs:
                new_start[i] = begun
                changed[found] = i
                found += 1
        if not differs:
            continue
        behind = place[i] + 1
        if behind < count[on]:
            r = rank[order[on, behind]]
            if last < r < ABSENT:
                marked[r] = stamp
                reach = max(reach, r)
        unit = i
        while unit >= 0:
            for a in range(feeds_at[unit], feeds_at[unit + 1]):
                r = rank[feeds_to[a]]
                if last < r < ABSENT:
                    marked[r] = stamp
                    reach = max(reach, r)
            if modes is None:
                break
            unit = modes.mate[unit]
    times.clock[CHANGED] = found
    return SIMULATED


@inner
def forget(times):  # type: ignore[no-untyped-def]
    """Let starts be what they were before the move."""
    start, new_start, changed = times.start, times.new_start, times.changed
    for k in range(times.clock[CHANGED]):
        i = changed[k]
        new_start[i] = start[i]


@inner
def settle_in(shop, modes, rows, times, opening, d, low, high, first, last):  # type: ignore[no-untyped-def]
    """Let the move be made: sequence, ranks, starts, and the tails of all that is before what it changed."""
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
    settle_tails(shop, modes, rows, times, opening, d, low, high, first, first + renewed - 1)


@inner
def settle_tails(shop, modes, rows, times, opening, d, low, high, first, last):  # type: ignore[no-untyped-def]
    """The tails of all from rank `last` down to `first`, and of what is before and has another one then."""
    ticks, device, waits_at, waits_for = shop.ticks, shop.device, shop.waits_at, shop.waits_for
    feeds_at, feeds_to, feeds_lag = shop.feeds_at, shop.feeds_to, shop.feeds_lag
    order, count, place, rank = rows.order, rows.count, rows.place, rows.rank
    tail, sequence, marked = times.tail, times.sequence, times.marked
    times.clock[STAMP] += 1
    stamp, reach, k = times.clock[STAMP], first, last + 1
    while k > reach:
        k -= 1
        if k < first and marked[k] != stamp:
            continue
        i = sequence[k]
        on = device[i]
        behind = place[i] + 1
        way = -opening[on]
        if behind < count[on]:
            j = order[on, behind]
            way = ticks[j] + tail[j]
        unit = i
        while unit >= 0:
            for a in range(feeds_at[unit], feeds_at[unit + 1]):
                j = feeds_to[a]
                if place[j] >= 0:
                    way = max(way, feeds_lag[a] + ticks[j] + tail[j])
            if modes is None:
                break
            unit = modes.mate[unit]
        if way == tail[i] and not (k >= first and on == d and low <= place[i] <= high):
            continue
        tail[i] = way
        if place[i] > 0:
            r = rank[order[on, place[i] - 1]]
            if r < first:
                marked[r] = stamp
                reach = min(reach, r)
        unit = i
        while unit >= 0:
            for a in range(waits_at[unit], waits_at[unit + 1]):
                r = rank[waits_for[a]]
                if r < first:
                    marked[r] = stamp
                    reach = min(reach, r)
            if modes is None:
                break
            unit = modes.mate[unit]
