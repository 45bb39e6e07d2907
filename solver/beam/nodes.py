"""Transition of a partial order by a step or block, compiled: its times, memory, and the weight passes before it.

A node is a row of 64-bit integers: by step how many micro-batches have taken it; by micro-batch of all chains the tick
at which its last step ended; by device the tick at which it is free; by step how many weight passes of that gradient
are pending; by device the memory in use. `tables` are the arrays of the problem by step and device. These functions are
called for each move of each node, a million times in a search.
"""

from __future__ import annotations

import numpy as np

from pipesched.compiled import inner
from solver.beam.tables import Numbers, StepTables


@inner
def offsets(tables: StepTables) -> tuple[int, int, int, int, int]:
    """Return the indices in a node at which its parts after the counts of steps begin, then the node's length.

    The parts are, in order: by micro-batch the end in ticks of its last step, by device the tick from which it is free,
    by step the number of pending weight passes, and by device the memory in use.
    """
    steps = tables.device.shape[0]
    ends = steps
    free = ends + tables.first[steps - 1] + tables.microbatches[steps - 1]
    waiting = free + tables.room.shape[0]
    memory_in_use = waiting + steps
    return ends, free, waiting, memory_in_use, memory_in_use + tables.room.shape[0]


def at_first(tables: StepTables) -> Numbers:
    """Return the node before any move: nothing has run, and each device is free from its opening time on."""
    _, free, waiting, _, size = offsets(tables)
    row = np.zeros(size, np.int64)
    row[free:waiting] = tables.opens
    return row


@inner
def run_weights(row: Numbers, device: int, until: int, short: int, more: int, tables: StepTables) -> int:
    """Run pending weight passes of a device in a node, in place; return the tick at which the device is free then.

    They are those that end by tick `until`, the longest first; then, the shortest first, as many as free the `short`
    memory that a forward lacks, or `more` further ones. Returns -1, with the node `row` spoilt, if there are too few of
    them, or if `more` are asked for where memory is short anyway.
    """
    _, free, waiting, memory_in_use, _ = offsets(tables)
    now = row[free + device]
    for at in range(tables.since[device], tables.since[device + 1]):
        step = tables.waits[at]
        while row[waiting + step] > 0 and now + tables.weight[step] <= until:
            row[waiting + step] -= 1
            row[memory_in_use + device] -= tables.later[step]
            now += tables.weight[step]
            short -= tables.later[step]
    if more > 0 and short > 0:
        return -1
    at = tables.since[device + 1] - 1
    while (short > 0 or more > 0) and at >= tables.since[device]:
        step = tables.waits[at]
        if row[waiting + step] == 0:
            at -= 1
            continue
        row[waiting + step] -= 1
        row[memory_in_use + device] -= tables.later[step]
        now += tables.weight[step]
        short -= tables.later[step]
        more -= 1
    return now if short <= 0 and more <= 0 else -1


@inner
def is_next(row: Numbers, step: int, tables: StepTables) -> bool:
    """True if a micro-batch of the chain can take this step next: it has taken the step before and not this one.

    Any micro-batch not yet begun can take a chain's first step. Time and memory are ignored. `row` is the node.
    """
    if row[step] >= tables.microbatches[step]:
        return False
    return tables.before[step] < 0 or row[tables.before[step]] > row[step]


@inner
def arrival_at(row: Numbers, step: int, tables: StepTables) -> int:
    """Return the tick at which the next micro-batch has arrived at a step.

    That is its end of the step before plus the transfer. 0 for a chain's first step. The device may still be busy then.
    `row` is a node in which `is_next` is true of the step.
    """
    if tables.before[step] < 0:
        return 0
    return row[tables.device.shape[0] + tables.first[step] + row[step]] + tables.lag[step]


@inner
def leaves_room(row: Numbers, step: int, tables: StepTables) -> bool:
    """True if a forward leaves enough memory on its device for the oldest unfinished micro-batch of each chain.

    Unfinished is a micro-batch that still needs memory which others could occupy for ever (`tables.safe`). Added up is
    the memory of three kinds of forwards on the device: all of the oldest unfinished micro-batch of each chain, those
    that younger micro-batches have run, and this one, `step`. Finished micro-batches release theirs without further
    memory. Without this rule, orders deadlock where each chain waits for the other. `row` is the node.
    """
    device, memory_in_use = tables.device[step], tables.takes[step]
    oldest = row[tables.safe[tables.chain[step], device]]
    if row[step] <= oldest:
        memory_in_use = 0
    for other in range(tables.device.shape[0]):
        if tables.device[other] != device or tables.weight[other] >= 0:
            continue
        oldest = row[tables.safe[tables.chain[other], device]]
        if oldest < tables.microbatches[other]:
            memory_in_use += tables.takes[other]
        memory_in_use += tables.takes[other] * max(0, row[other] - oldest - 1)
    return memory_in_use <= tables.room[device]


@inner
def take(row: Numbers, step: int, mate: int, delay: int, tables: StepTables) -> tuple[int, int]:
    """Apply a move to the node `row` in place; return its start and end in ticks, both -1 if it is not possible.

    The next micro-batch takes `step`: a forward or gradient, or a forward in a block with the gradient `mate` if that
    is not -1; `is_next` must be true of both. Before it the device runs all pending weight passes that end by the time
    at which it could start. After these, a forward that still lacks memory waits for as many as free it; one that has
    room, and any gradient, waits for one if `delay` is 1, for none if it is 0. A move is not possible, and the node
    spoilt, if fewer are pending, or if `delay` is 1 and memory is lacking.
    """
    ends, free, waiting, memory_in_use, _ = offsets(tables)
    device = tables.device[step]
    ready = max(row[free + device], arrival_at(row, step, tables))
    if mate >= 0:
        ready = max(ready, arrival_at(row, mate, tables))
    short = row[memory_in_use + device] + tables.takes[step] - tables.room[device] if tables.weight[step] < 0 else 0
    now = run_weights(row, device, ready, short, delay, tables)
    if now < 0:
        return -1, -1
    start = max(ready, now)
    end = start + (tables.ticks[step] if mate < 0 else tables.block[step, mate])
    row[ends + tables.first[step] + row[step]] = end
    row[step] += 1
    row[free + device] = end
    row[memory_in_use + device] += tables.takes[step] - tables.gives[step]
    if tables.weight[step] > 0:
        row[waiting + step] += 1
    if mate >= 0:
        row[ends + tables.first[mate] + row[mate]] = end
        row[mate] += 1
        row[memory_in_use + device] -= tables.gives[mate] + tables.later[mate]
    return start, end
