"""What a layer of orders becomes by a step or a block more, compiled: which are tried, and what they are ranked by."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import inner
from solver.beam.nodes import is_next, leaves_room, offsets, take
from solver.beam.tables import Numbers

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
