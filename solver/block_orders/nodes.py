"""What a layer of orders becomes by a step or a block more, compiled: children of each, and what they may take.

A node is a row of numbers: how many micro-batches have taken each step, when each micro-batch ended its last one, when
each device is free, how many weight passes of each gradient wait, and what each device holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solver.backends.compiled import inner
from solver.block_orders.tables import Numbers

# Later than anything.
_NEVER = 2**60
# Of a move: the forward or the gradient, the gradient in a block with it or -1, weight passes that it waits for
# besides those that end before it, and its start and end.
STEP, MATE, DELAY, START, END = range(5)


class Preference(NamedTuple):
    """Which orders are kept. Waits are in ticks, up to which something else on the device is passed over.

    `block_wait` is that of a block, `wait` that of what a micro-batch does after a forward. The others are weights: of
    the longest that the whole must take at least, of the mean over devices and of that over micro-batches under way.
    """

    block_wait: float
    wait: float
    longest: float
    devices: float
    microbatches: float


class Children(NamedTuple):
    """Rows for nodes, a hash of what they have run, what they are ranked by, the parent of each, and its move."""

    nodes: Numbers
    keys: Numbers
    ranks: NDArray[np.float64]
    parents: Numbers
    moves: Numbers


@inner
def offsets(walks):  # type: ignore[no-untyped-def]
    """Where the parts of a node begin after the counts of steps; last its length."""
    steps = walks.device.shape[0]
    ends = steps
    free = ends + walks.first[steps - 1] + walks.microbatches[steps - 1]
    waiting = free + walks.room.shape[0]
    held = waiting + steps
    return ends, free, waiting, held, held + walks.room.shape[0]


@inner
def run_weights(row, device, until, short, more, walks):  # type: ignore[no-untyped-def]
    """Run weight passes of a device in a node: those that end in time, what memory is short of, and some more.

    When the device is free then; -1 where there are not so many. Changes what waits and what is held.
    """
    _, free, waiting, held, _ = offsets(walks)
    now = row[free + device]
    for at in range(walks.since[device], walks.since[device + 1]):
        step = walks.waits[at]
        while row[waiting + step] > 0 and now + walks.weight[step] <= until:
            row[waiting + step] -= 1
            row[held + device] -= walks.later[step]
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
        row[held + device] -= walks.later[step]
        now += walks.weight[step]
        short -= walks.later[step]
        more -= 1
    return now if short <= 0 and more <= 0 else -1


@inner
def is_next(row, step, walks):  # type: ignore[no-untyped-def]
    """Whether a micro-batch has come to a step."""
    if row[step] >= walks.microbatches[step]:
        return False
    return walks.before[step] < 0 or row[walks.before[step]] > row[step]


@inner
def comes(row, step, walks):  # type: ignore[no-untyped-def]
    """When the next micro-batch can take a step, but for its device."""
    if walks.before[step] < 0:
        return 0
    return row[walks.device.shape[0] + walks.first[step] + row[step]] + walks.lag[step]


@inner
def leaves_room(row, step, walks):  # type: ignore[no-untyped-def]
    """Whether a forward leaves room for the oldest micro-batch of each chain that has some left.

    All that older ones hold is given back. Without this rule orders end where each chain waits for the other.
    """
    device, held = walks.device[step], walks.takes[step]
    oldest = row[walks.safe[walks.chain[step], device]]
    if row[step] <= oldest:
        held = 0
    for other in range(walks.device.shape[0]):
        if walks.device[other] != device or walks.weight[other] >= 0:
            continue
        oldest = row[walks.safe[walks.chain[other], device]]
        if oldest < walks.microbatches[other]:
            held += walks.takes[other]
        held += walks.takes[other] * max(0, row[other] - oldest - 1)
    return held <= walks.room[device]


@inner
def take(row, step, mate, delay, walks):  # type: ignore[no-untyped-def]
    """Change a node by a move: its start and its end, -1 both where memory has no room for it."""
    ends, free, waiting, held, _ = offsets(walks)
    device = walks.device[step]
    ready = max(row[free + device], comes(row, step, walks))
    if mate >= 0:
        ready = max(ready, comes(row, mate, walks))
    short = row[held + device] + walks.takes[step] - walks.room[device] if walks.weight[step] < 0 else 0
    now = run_weights(row, device, ready, short, delay, walks)
    if now < 0:
        return -1, -1
    start = max(ready, now)
    end = start + (walks.ticks[step] if mate < 0 else walks.block[step, mate])
    row[ends + walks.first[step] + row[step]] = end
    row[step] += 1
    row[free + device] = end
    row[held + device] += walks.takes[step] - walks.gives[step]
    if walks.weight[step] > 0:
        row[waiting + step] += 1
    if mate >= 0:
        row[ends + walks.first[mate] + row[mate]] = end
        row[mate] += 1
        row[held + device] -= walks.gives[mate] + walks.later[mate]
    return start, end


@inner
def moves_of(row, scratch, moves, walks):  # type: ignore[no-untyped-def]
    """Fill in what may be next; how many moves that are."""
    found, size, steps = 0, row.shape[0], walks.device.shape[0]
    for step in range(steps):
        forward = walks.weight[step] < 0
        if not is_next(row, step, walks) or (forward and not leaves_room(row, step, walks)):
            continue
        for mate in range(-1, steps if forward else 0):
            if mate >= 0 and (walks.block[step, mate] < 0 or not is_next(row, mate, walks)):
                continue
            if mate >= 0 and walks.chain[mate] == walks.chain[step] and row[mate] == row[step]:
                continue
            for delay in range(2 if mate < 0 else 1):
                for entry in range(size):
                    scratch[entry] = row[entry]
                start, end = take(scratch, step, mate, delay, walks)
                if end < 0:
                    continue
                move = moves[found]
                move[STEP], move[MATE], move[DELAY], move[START], move[END] = step, mate, delay, start, end
                found += 1
    return found


@inner
def ranked(row, walks, prefers):  # type: ignore[no-untyped-def]
    """What a node is ranked by, lower is better: what the whole must still take, and how far it has come.

    Each device runs what it has left, in as many blocks as it has forwards and gradients for, once something comes
    to it again; each micro-batch under way walks to its end.
    """
    ends, free, waiting, _, _ = offsets(walks)
    steps, devices = walks.device.shape[0], walks.room.shape[0]
    longest, mean, flying, under_way = 0.0, 0.0, 0.0, 0
    for device in range(devices):
        work, forwards, gradients, backlog, soon = 0, 0, 0, 0, _NEVER
        for step in range(steps):
            left = walks.microbatches[step] - row[step]
            if walks.device[step] == device:
                work += left * walks.ticks[step]
                if walks.weight[step] < 0:
                    forwards += left
                else:
                    gradients += left
                    work += left * walks.weight[step]
                    backlog += row[waiting + step] * walks.weight[step]
            # Those that have come to this step, the first of them the soonest.
            if left > 0 and walks.reach[step, device] >= 0 and is_next(row, step, walks):
                since = row[free + walks.device[step]]
                if walks.before[step] >= 0:
                    since = row[ends + walks.first[step] + row[step]] + walks.lag[step]
                soon = min(soon, since + walks.reach[step, device])
        until = row[free + device] + backlog
        if forwards + gradients > 0:
            until = max(until, soon) + work - walks.saved[device] * min(forwards, gradients)
        longest = max(longest, until)
        mean += until
    for step in range(steps):
        if walks.before[step] < 0:
            continue
        for one in range(row[step], row[walks.before[step]]):
            since = row[ends + walks.first[step] + one] + walks.lag[step]
            until = max(since, row[free + walks.device[step]]) + walks.rest[step]
            longest = max(longest, until)
            flying += until
            under_way += 1
    all_of = walks.first[steps - 1] + walks.microbatches[steps - 1]
    return prefers.longest * longest + prefers.devices * mean / devices + prefers.microbatches * flying / all_of


@inner
def hashed(row, walks):  # type: ignore[no-untyped-def]
    """A number for how many micro-batches have taken each step."""
    key = np.int64(1469598103934665603)
    for step in range(walks.device.shape[0]):
        key = (key ^ row[step]) * np.int64(1099511628211)
    return key


@inner
def expand(rows, since, walks, prefers, scratch, moves, out):  # type: ignore[no-untyped-def]
    """Children of these rows from `since` on while there is room for them: how many, and the row to go on with.

    Of each the move is looked for that could end first, and what could start on its device before that end, or waits
    no longer after it than `prefers` says, is tried.
    """
    found, size = 0, rows.shape[1]
    for number in range(since, rows.shape[0]):
        row = rows[number]
        count = moves_of(row, scratch, moves, walks)
        if found + count > out.nodes.shape[0]:
            return found, number
        first, until = -1, _NEVER
        for one in range(count):
            if moves[one, MATE] < 0 and moves[one, DELAY] == 0 and moves[one, END] < until:
                first, until = moves[one, STEP], moves[one, END]
        if first < 0:
            continue
        for one in range(count):
            step, mate, start = moves[one, STEP], moves[one, MATE], moves[one, START]
            wait = 0.0
            if mate >= 0:
                wait = prefers.block_wait
            elif walks.weight[first] < 0 and step != first:
                wait = prefers.wait
            if walks.device[step] != walks.device[first] or start >= until + wait:
                continue
            child = out.nodes[found]
            for entry in range(size):
                child[entry] = row[entry]
            take(child, step, mate, moves[one, DELAY], walks)
            out.keys[found] = hashed(child, walks)
            out.ranks[found] = ranked(child, walks, prefers)
            out.parents[found] = number
            out.moves[found, STEP], out.moves[found, MATE], out.moves[found, DELAY] = step, mate, moves[one, DELAY]
            found += 1
    return found, rows.shape[0]
