"""What must follow on one device: rows of times from those of a label to the end, for each state that is reached.

A row belongs to orders of what is left: a label whose time plus the row's, anywhere, comes to the value cannot be
followed by these below it. Rows are found backwards, a step or a block at a time, for the states that labels below the
value come to; those with which the least times of a state come to the value are left out. Of a state's other rows so
many are kept distinct; a merged one has the least of every time, so that it says no more than either.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from pipesched.compiled import compiled
from solver.diagram.all_chains.states import moves_of
from solver.diagram.all_chains.steps import NONE, ChainSteps
from solver.diagram.layers import Labels
from solver.diagram.reduction import append_reduced
from solver.diagram.steps import Numbers

# Numbers that rows may have in all, eight bytes each; states of one call of compiled code, which nothing interrupts.
_MOST_NUMBERS, _AT_ONCE = 20_000_000, 200


class Follows(NamedTuple):
    """States by key; for each, `rows[n, : many[n]]` of what follows: by entry of a label, and last from time 0."""

    keys: Numbers
    rows: Numbers
    many: Numbers


def what_follows(steps: ChainSteps, reached: Sequence[Labels], width: int, value: int, stop: Event) -> Follows | None:
    """For the steps of one device, from the least times of all states reached; None where rows are too many."""
    columns = steps.slots + 3
    keys = np.concatenate([layer.keys for layer in reached])
    order = np.argsort(keys)
    keys = np.append(keys[order], (steps.place * steps.microbatches).sum())
    least = np.concatenate([layer.labels for layer in reached])[order]
    if len(keys) * width * columns > _MOST_NUMBERS:
        return None
    found = Follows(keys, np.zeros((len(keys), width, columns), np.int64), np.zeros(len(keys), np.int64))
    found.many[-1] = 1
    for until in range(len(keys) - 1, 0, -_AT_ONCE):
        if stop.is_set():
            return None
        states_before(found, least, max(0, until - _AT_ONCE), until, steps, value)
    return found


@compiled
def states_before(found: Follows, least: Numbers, since: int, until: int, steps: ChainSteps, value: int) -> None:
    """Fill in the rows of some states, the last one first, from those of the states that a step or block leads to."""
    count, width, columns = len(steps.ticks), found.rows.shape[1], found.rows.shape[2]
    run, may = np.zeros(count, np.int64), np.zeros(count, np.int64)
    moves = np.empty((count * (count + 1), 2), np.int64)
    rows, kept = np.empty((width * len(moves), columns), np.int64), np.empty((width * len(moves), columns), np.int64)
    words = np.empty(len(rows), np.int64)
    for state in range(until - 1, since - 1, -1):
        many = 0
        for step, gradient in moves[: moves_of(found.keys[state], steps, run, may, moves)]:
            key = found.keys[state] + steps.place[step] + (0 if gradient == NONE else steps.place[gradient])
            after = np.searchsorted(found.keys, key)
            if after == len(found.keys) or found.keys[after] != key:
                continue
            for number in range(found.many[after]):
                _before(rows[many], found.rows[after, number], step, gradient, run, may[step], steps)
                if _in_time(rows[many], least[state], steps.origin, value):
                    many += 1
        if many:
            left = min(width, append_reduced(rows[:many], width, kept, 0, words))
            found.rows[state, :left] = kept[:left]
            found.many[state] = left


@compiled
def _in_time(row: Numbers, least: Numbers, origin: int, value: int) -> bool:
    """Whether something that ends below the value may follow the least times of a state."""
    for entry in range(len(least)):
        if least[entry] + row[entry] >= value:
            return False
    return bool(origin + row[len(least)] < value)


@compiled
def _before(
    row: Numbers, after: Numbers, step: int, gradient: int, run: Numbers, pending: int, steps: ChainSteps
) -> None:
    """The row before a step or a block, from one after it."""
    free, whole, start = steps.slots, steps.slots + 1, steps.slots + 2
    row[:] = 0
    later = 0 if gradient != NONE else steps.later[step]
    work = steps.ticks[step] if gradient == NONE else steps.blocks[step, gradient]
    rest = max(after[free], after[whole] + later)
    for one in (step, gradient):
        if one != NONE:
            rest = max(rest, steps.after[one])
            if one != steps.last[one]:
                rest = max(rest, after[steps.slot[one] + run[one] - run[steps.last[one]]])
    row[free] = rest + work
    row[whole] = work + later + after[whole]
    if pending >= 0:
        row[whole] = max(row[whole], row[free] - pending * steps.longest[0])
    row[start] = after[start]
    _others(row, after, step, gradient, run, steps)
    for one in (step, gradient):
        if one != NONE:
            entry = start if steps.before[one] == NONE else steps.slot[one] + run[one] - run[steps.last[one]]
            row[entry] = max(row[entry], steps.lag[one] + row[free])


@compiled
def _others(row: Numbers, after: Numbers, step: int, gradient: int, run: Numbers, steps: ChainSteps) -> None:
    """What follows micro-batches in flight that a step leaves where they are, but for their place in the row."""
    for first in range(len(run)):
        if steps.before[first] != NONE:
            continue
        last = steps.last[first]
        gone = 1 if last in (step, gradient) else 0
        for number in range(gone, run[first] - run[last]):
            if not _moved(first, number, step, gradient, run, steps):
                row[steps.slot[first] + number] = after[steps.slot[first] + number - gone]


@compiled
def _moved(first: int, number: int, step: int, gradient: int, run: Numbers, steps: ChainSteps) -> bool:
    """Whether a micro-batch of the chain that begins with a step is that which one of two steps takes."""
    for one in (step, gradient):
        same = one != NONE and steps.last[one] == steps.last[first] and steps.before[one] != NONE
        if same and run[one] - run[steps.last[one]] == number:
            return True
    return False
