"""Simulation of a part of the topological sequence of units, compiled: what a move may reorder, or all of it.

`modes` is None where the modes of all passes are fixed; `opening` has by device the tick before which it does not
start. Where the units are jobs, ticks stand for steps, and each stream counts as a device.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import inlined
from solver.local_search.arrays import Array, Modes, Rows, Shop, Times
from solver.local_search.modes import ABSENT

# Places of `Times.clock`.
STAMP, CHANGED, LENGTH, FRESH = range(4)


def times_of(units: int) -> Times:
    """Return arrays for this number of units, all zeros except `sequence`, which has the units in order of number."""
    arrays = [np.zeros(units, np.int64) for _ in range(8)]
    return Times._make([*arrays, np.zeros(4, np.int64)])._replace(sequence=np.arange(units))


@inlined
def reopen(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    opening: Array,
    sequence: Array,
    first: int,
    begin: int,
    length: int,
) -> tuple[int, int]:
    """Prepare a simulation of `sequence[begin:length]`.

    Count each unit's simulated predecessors, and set its first start. Predecessors of rank below `first` are not
    simulated, and the start is after these and the device's opening. Units that wait for no simulated one are written
    to `times.fresh` from `begin` on. Returns the index after the last of these, and the index after the last once all
    units are there; units without a place are skipped.
    """
    order, place, rank = rows.order, rows.place, rows.rank
    start, new_start, missing, fresh = times.start, times.new_start, times.missing, times.fresh
    ready = last = begin
    for k in range(begin, length):
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
            fresh[ready] = i
            ready += 1
    return ready, last


@inlined
def simulate_from(
    shop: Shop,
    modes: Modes | None,
    rows: Rows,
    times: Times,
    opening: Array,
    sequence: Array,
    first: int,
    last: int,
    begin: int,
    length: int,
) -> bool:
    """Compute in `times.new_start` the earliest starts of `sequence[begin:length]`; False if their order has a cycle.

    They are the units of ranks `first` to `last` in the topological sequence, and those without a rank; their new order
    is written to `times.fresh`, also from `begin` on. Units before them keep their starts; units without a place are
    skipped. `opening` has by device the tick before which it does not start.
    """
    order, count, place, rank = rows.order, rows.count, rows.place, rows.rank
    new_start, missing, fresh = times.new_start, times.missing, times.fresh
    tail, units = reopen(shop, modes, rows, times, opening, sequence, first, begin, length)
    head = begin
    while head < tail:
        i = fresh[head]
        head += 1
        end = new_start[i] + shop.ticks[i]
        d = shop.device[i]
        next_place = place[i] + 1
        if next_place < count[d]:
            j = order[d, next_place]
            if rank[j] <= last or rank[j] == ABSENT:
                new_start[j] = max(new_start[j], end)
                missing[j] -= 1
                if missing[j] == 0:
                    fresh[tail] = j
                    tail += 1
        unit = i
        while unit >= 0:
            for a in range(shop.feeds_at[unit], shop.feeds_at[unit + 1]):
                j = shop.feeds_to[a]
                if place[j] >= 0 and (rank[j] <= last or rank[j] == ABSENT):
                    new_start[j] = max(new_start[j], end + shop.feeds_lag[a])
                    missing[j] -= 1
                    if missing[j] == 0:
                        fresh[tail] = j
                        tail += 1
            if modes is None:
                break
            unit = modes.mate[unit]
    return tail == units


@inlined
def evaluate(shop: Shop, rows: Rows, times: Times, opening: Array, first: int) -> tuple[int, float, int]:
    """Return the longest time of a device from opening to last end, the mean over devices, and that device; in ticks.

    `opening` is by device. Units of rank `first` or more in the topological sequence have their start in
    `times.new_start`. Devices without units count as 0.
    """
    order, count, rank, start, new_start = rows.order, rows.count, rows.rank, times.start, times.new_start
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
