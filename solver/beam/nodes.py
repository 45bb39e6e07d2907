"""Transition of a partial order by a step or block, compiled: its times, memory, and the weight passes before it.

A node is a row of numbers: how many micro-batches have taken each step, when each micro-batch ended its last one, when
each device is free, how many weight passes of each gradient are pending, and the memory level of each device.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import inner
from solver.beam.tables import Numbers, Walks


@inner
def offsets(walks):  # type: ignore[no-untyped-def]
    """Return where the parts of a node begin after the counts of steps, then the node's length.

    The parts are: ends of the last step of each micro-batch, free times of devices, pending weight passes of each step,
    and memory in use of devices.
    """
    steps = walks.device.shape[0]
    ends = steps
    free = ends + walks.first[steps - 1] + walks.microbatches[steps - 1]
    waiting = free + walks.room.shape[0]
    memory_in_use = waiting + steps
    return ends, free, waiting, memory_in_use, memory_in_use + walks.room.shape[0]


def at_first(walks: Walks) -> Numbers:
    """Return the node before any move: nothing has run, and each device is free from its opening time on."""
    _, free, waiting, _, size = offsets(walks)
    row = np.zeros(size, np.int64)
    row[free:waiting] = walks.opens
    return row


@inner
def run_weights(row, device, until, short, more, walks):  # type: ignore[no-untyped-def]
    """Run weight passes of a device in a node, in place; return the tick at which the device is free then.

    They are those that end by `until`, then as many as free the `short` missing memory, and `more` in addition. -1 if
    there are too few of them, or if `more` are asked for where memory is short anyway.
    """
    _, free, waiting, memory_in_use, _ = offsets(walks)
    now = row[free + device]
    for at in range(walks.since[device], walks.since[device + 1]):
        step = walks.waits[at]
        while row[waiting + step] > 0 and now + walks.weight[step] <= until:
            row[waiting + step] -= 1
            row[memory_in_use + device] -= walks.later[step]
            now += walks.weight[step]
            short -= walks.later[step]
    if more > 0 and short > 0:
        return -1
    at = walks.since[device + 1] - 1
    while (short > 0 or more > 0) and at >= walks.since[device]:
        step = walks.waits[at]
        if row[waiting + step] == 0:
            at -= 1
            continue
        row[waiting + step] -= 1
        row[memory_in_use + device] -= walks.later[step]
        now += walks.weight[step]
        short -= walks.later[step]
        more -= 1
    return now if short <= 0 and more <= 0 else -1


@inner
def is_next(row, step, walks):  # type: ignore[no-untyped-def]
    """True if a micro-batch waits to take this step: it has taken the step before and not this one."""
    if row[step] >= walks.microbatches[step]:
        return False
    return walks.before[step] < 0 or row[walks.before[step]] > row[step]


@inner
def arrival_at(row, step, walks):  # type: ignore[no-untyped-def]
    """Return the tick at which the next micro-batch has arrived at a step; its device may still be busy then."""
    if walks.before[step] < 0:
        return 0
    return row[walks.device.shape[0] + walks.first[step] + row[step]] + walks.lag[step]


@inner
def leaves_room(row, step, walks):  # type: ignore[no-untyped-def]
    """True if a forward leaves enough memory on its device for the oldest unfinished micro-batch of each chain.

    Memory of still older ones is released. Without this rule, orders deadlock where each chain waits for the other.
    """
    device, memory_in_use = walks.device[step], walks.takes[step]
    oldest = row[walks.safe[walks.chain[step], device]]
    if row[step] <= oldest:
        memory_in_use = 0
    for other in range(walks.device.shape[0]):
        if walks.device[other] != device or walks.weight[other] >= 0:
            continue
        oldest = row[walks.safe[walks.chain[other], device]]
        if oldest < walks.microbatches[other]:
            memory_in_use += walks.takes[other]
        memory_in_use += walks.takes[other] * max(0, row[other] - oldest - 1)
    return memory_in_use <= walks.room[device]


@inner
def take(row, step, mate, delay, walks):  # type: ignore[no-untyped-def]
    """Apply a move to a node in place; return its start and end in ticks, both -1 where memory has no room for it.

    `mate` is the gradient in a block with `step`, or -1; `delay` is 1 if one more weight pass is to run before.
    """
    ends, free, waiting, memory_in_use, _ = offsets(walks)
    device = walks.device[step]
    ready = max(row[free + device], arrival_at(row, step, walks))
    if mate >= 0:
        ready = max(ready, arrival_at(row, mate, walks))
    short = row[memory_in_use + device] + walks.takes[step] - walks.room[device] if walks.weight[step] < 0 else 0
    now = run_weights(row, device, ready, short, delay, walks)
    if now < 0:
        return -1, -1
    start = max(ready, now)
    end = start + (walks.ticks[step] if mate < 0 else walks.block[step, mate])
    row[ends + walks.first[step] + row[step]] = end
    row[step] += 1
    row[free + device] = end
    row[memory_in_use + device] += walks.takes[step] - walks.gives[step]
    if walks.weight[step] > 0:
        row[waiting + step] += 1
    if mate >= 0:
        row[ends + walks.first[mate] + row[mate]] = end
        row[mate] += 1
        row[memory_in_use + device] -= walks.gives[mate] + walks.later[mate]
    return start, end
