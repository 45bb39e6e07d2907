"""Simulation of a part of the topological order, compiled: of what a move can change the order of, or all."""

from __future__ import annotations

from solver.backends.compiled import inner
from solver.local_search.modes import ABSENT


@inner
def reopen(  # type: ignore[no-untyped-def]
    shop, modes, order, place, opening, start, sequence, rank, first, begin, length, new_start, new_sequence, missing
):
    """Begin to simulate: what each unit waits for, and a start after what came before.

    Returns the length of the new sequence, and what it is with the units that have to wait.
    """
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
            new_sequence[ready] = i
            ready += 1
    return ready, last


@inner
def simulate_from(  # type: ignore[no-untyped-def]
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
    last,
    begin,
    length,
    new_start,
    new_sequence,
    missing,
):
    """Starts as soon as possible of the units in `sequence` from `begin` on; whether their order has no cycle.

    They are those of ranks `first` to `last`, and those with none but a place. What came before cannot depend on what
    moved, and keeps its `start`. The sequence has this `length`; what has no place is left out.
    """
    tail, units = reopen(
        shop,
        modes,
        order,
        place,
        opening,
        start,
        sequence,
        rank,
        first,
        begin,
        length,
        new_start,
        new_sequence,
        missing,
    )
    head = begin
    while head < tail:
        i = new_sequence[head]
        head += 1
        end = new_start[i] + shop.ticks[i]
        d = shop.device[i]
        behind = place[i] + 1
        if behind < count[d]:
            j = order[d, behind]
            if rank[j] <= last or rank[j] == ABSENT:
                new_start[j] = max(new_start[j], end)
                missing[j] -= 1
                if missing[j] == 0:
                    new_sequence[tail] = j
                    tail += 1
        unit = i
        while unit >= 0:
            for a in range(shop.feeds_at[unit], shop.feeds_at[unit + 1]):
                j = shop.feeds_to[a]
                if place[j] >= 0 and (rank[j] <= last or rank[j] == ABSENT):
                    new_start[j] = max(new_start[j], end + shop.feeds_lag[a])
                    missing[j] -= 1
                    if missing[j] == 0:
                        new_sequence[tail] = j
                        tail += 1
            if modes is None:
                break
            unit = modes.mate[unit]
    return tail == units


@inner
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
