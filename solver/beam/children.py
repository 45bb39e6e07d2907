"""Expansion of a layer of partial orders by one more step or block, compiled, and the choice of the children to try."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.compiled import inner
from solver.beam.nodes import is_next, leaves_room, take
from solver.beam.ranks import NEVER, Preference, ranked
from solver.beam.tables import ENDLESS, Numbers, StepTables

# Of a move: the forward or the gradient, the gradient in a block with it or -1, weight passes that it waits for
# besides those that end before it, and its start and end.
STEP, MATE, DELAY, START, END = range(5)


class Children(NamedTuple):
    """Children of the nodes of one layer of a beam search, as arrays with a row for each child.

    `nodes` has the nodes themselves (see `solver.beam.nodes`), `keys` a hash of the steps that each has run, `ranks`
    the weighted sum of estimates in ticks by which they are compared, lower being better. `parents` has the index of
    the parent in its layer, and `moves` the move from the parent, in columns STEP, MATE and DELAY.
    """

    nodes: Numbers
    keys: Numbers
    ranks: NDArray[np.float64]
    parents: Numbers
    moves: Numbers


@inner
def moves_of(row: Numbers, scratch: Numbers, moves: Numbers, tables: StepTables) -> int:
    """Fill `moves` with the moves possible at a node, a row (STEP, MATE, DELAY, START, END) for each.

    Return their number. STEP is a forward or gradient, MATE the gradient in a block with it or -1; DELAY is 1 if a
    pending weight pass runs first though neither time nor memory requires it; START and END are in ticks. Moves that
    memory does not admit are left out. `row` is the node; `scratch` is working space of its length.
    """
    found, size, steps = 0, row.shape[0], tables.device.shape[0]
    for step in range(steps):
        forward = tables.weight[step] < 0
        if not is_next(row, step, tables) or (forward and not leaves_room(row, step, tables)):
            continue
        for mate in range(-1, steps if forward else 0):
            if mate >= 0 and (tables.block[step, mate] < 0 or not is_next(row, mate, tables)):
                continue
            if mate >= 0 and tables.chain[mate] == tables.chain[step] and row[mate] == row[step]:
                continue
            for delay in range(2 if mate < 0 else 1):
                for entry in range(size):
                    scratch[entry] = row[entry]
                start, end = take(scratch, step, mate, delay, tables)
                if end < 0:
                    continue
                move = moves[found]
                move[STEP], move[MATE], move[DELAY], move[START], move[END] = step, mate, delay, start, end
                found += 1
    return found


@inner
def hashed(row: Numbers, tables: StepTables) -> np.int64:
    """Return a 64-bit hash of the steps that a node has run; time, memory and weight passes do not count.

    `row` is the node, whose first entries are the numbers of micro-batches that have taken each step. Of nodes with the
    same hash the search keeps a few.
    """
    key = np.int64(1469598103934665603)
    for step in range(tables.device.shape[0]):
        key = (key ^ row[step]) * np.int64(1099511628211)
    return key


@inner
def expand(
    rows: Numbers,
    since: int,
    tables: StepTables,
    prefers: Preference,
    scratch: Numbers,
    moves: Numbers,
    sums: NDArray[np.float64],
    out: Children,
) -> tuple[int, int]:
    """Write the children of the nodes from row `since` on to `out` while there is room.

    Return their number and the next row. The next row is the first one not expanded. For each node, the move that could
    end first is determined, of single steps without DELAY; moves that could start on its device before that end are
    made, and blocks that start less than `prefers.block_wait` ticks after it. If that first move is a forward that
    takes limited memory, the same is done once more without that forward, since memory taken too soon may keep all
    others waiting. `rows` has a node in each row, `out` is a `Children`; `scratch`, `moves` and `sums` are working
    space for a node, its moves (5 columns), and estimates by device.
    """
    found = 0
    for number in range(since, rows.shape[0]):
        row = rows[number]
        count = moves_of(row, scratch, moves, tables)
        if found + 2 * count > out.nodes.shape[0]:
            return found, number
        put_off = -1
        while True:
            first, until = -1, NEVER
            for one in range(count):
                alone = moves[one, MATE] < 0 and moves[one, DELAY] == 0 and moves[one, STEP] != put_off
                if alone and moves[one, END] < until:
                    first, until = moves[one, STEP], moves[one, END]
            if first < 0:
                break
            for one in range(count):
                step, mate = moves[one, STEP], moves[one, MATE]
                wait = prefers.block_wait if mate >= 0 else 0.0
                soon = moves[one, START] < until + wait and tables.device[step] == tables.device[first]
                if not soon or step == put_off:
                    continue
                child = out.nodes[found]
                for entry in range(row.shape[0]):
                    child[entry] = row[entry]
                take(child, step, mate, moves[one, DELAY], tables)
                out.keys[found] = hashed(child, tables)
                out.ranks[found] = ranked(child, tables, prefers, sums)
                out.parents[found] = number
                out.moves[found, STEP], out.moves[found, MATE], out.moves[found, DELAY] = step, mate, moves[one, DELAY]
                found += 1
            if put_off >= 0 or tables.weight[first] >= 0 or tables.room[tables.device[first]] == ENDLESS:
                break
            put_off = first
    return found, rows.shape[0]
