"""Good ways on from every state of every layer: one pass backwards that keeps a few of them, as what follows each time.

What follows the times of a label on one way on is a row of `solver.diagram.completion`. One row a state,
the least of each time, says less than any of them: no way on has all of these. Here a state keeps some rows, each of
a way of its own, and the others are left out. So the least over its rows is no bound, but says well which labels of a
state can still become good.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

import numpy as np

from pipesched.compiled import compiled
from solver.diagram.completion import Rests, Short, before
from solver.diagram.moves import moves_from
from solver.diagram.reduction import nowhere_later
from solver.diagram.steps import NONE, NOTHING, Numbers, Steps
from solver.tuning import FEW


def continuations(steps: Steps, rest: Sequence[Rests], most: int, stop: Event) -> list[Rests] | None:
    """So many of a state, for the states of `rest`; None after a stop."""
    found = [rest[-1]]
    for done in reversed(range(len(rest) - 1)):
        if stop.is_set():
            return None
        keys, rows = ways_before(rest[done].keys, steps, done, *found[-1])
        found.append(Rests(rest[done].keys, *best_ways(keys, rows, most, len(rest[done].keys))))
    return found[::-1]


@compiled
def ways_before(keys, steps: Steps, done: int, keys_of, first, rests):  # type: ignore[no-untyped-def]
    """The ways on from each state by each step that may be next: of each its state and what follows."""
    ran, pending, row = np.zeros_like(steps.ticks), np.zeros_like(steps.ticks), np.zeros(rests.shape[1], np.int64)
    moves, size = np.empty((len(ran), 2), np.int64), 0
    for state in range(len(keys)):
        for move in range(moves_from(keys[state], steps, done, ran, pending, moves)):
            after = np.searchsorted(keys_of, keys[state] + steps.raises[moves[move, 0]])
            size += first[after + 1] - first[after]
    out_keys, out, found = np.empty(size, np.int64), np.empty((size, len(row)), np.int32), 0
    for state in range(len(keys)):
        for move in range(moves_from(keys[state], steps, done, ran, pending, moves)):
            step = moves[move, 0]
            after = np.searchsorted(keys_of, keys[state] + steps.raises[step])
            for way in range(first[after], first[after + 1]):
                before(row, rests[way], step, NONE, pending[step], ran, steps)
                out_keys[found] = keys[state]
                for time in range(len(row)):
                    out[found, time] = max(NOTHING, row[time])
                found += 1
    return out_keys, out


@compiled
def best_ways(keys: Numbers, rows: Short, most: int, states: int) -> tuple[Numbers, Short]:
    """Of ways in the order of their states: where those of each begin, and so many that no other one is below."""
    first, kept, sums = np.zeros(states + 1, np.int64), np.empty(len(keys), np.int64), np.zeros(len(keys), np.int64)
    for way in range(len(keys)):
        sums[way] = rows[way].sum() + FEW * np.int64(rows[way].max())
    state = total = since = 0
    while since < len(keys):
        until, begin = since, total
        while until < len(keys) and keys[until] == keys[since]:
            until += 1
        for number in np.argsort(sums[since:until], kind="mergesort"):
            below = False
            for other in range(begin, total):
                below = below or nowhere_later(rows[kept[other]], rows[since + number])
            if not below:
                kept[total] = since + number
                total += 1
                if total - begin == most:
                    break
        state, since = state + 1, until
        first[state] = total
    return first, rows[kept[:total]]
