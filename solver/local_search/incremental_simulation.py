"""Simulation of what a move can change, compiled: from the first unit that it touches in topological order on."""

from __future__ import annotations

from numba import njit

from solver.local_search.mode_edits import begin
from solver.local_search.modes import ABSENT


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
