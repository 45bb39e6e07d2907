"""Completion bounds: how long the rest of an order takes at least, found from the end, for each state.

A time of a label is followed by a step that waits for it, and that step by what follows its own end; a block is a step
by which two end. Each way to go on has such a row of what follows each time. Of the rows of a state so many are kept
distinct, and near ones count as the least of them: of a single one each time is the least over all ways, so that no
order counts as longer than it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipesched.checking.diagram.labels import told_apart
from pipesched.checking.diagram.moves import LONG_AGO, Labels, allowed, moves_from, place_of, run_after
from pipesched.checking.diagram.repetition import Reached, runs_of
from pipesched.checking.diagram.walk import NOTHING, Numbers, Steps, Walk
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner

# What follows a time that holds nothing up; numbers of more digits; the most numbers there may be.
NEVER, FOREVER, _MOST_NUMBERS = -(2**29), 2**29, 60_000_000
# States of which all rows of all moves are told apart at once, if each has one.
_AT_ONCE = 2**18


class Rest(NamedTuple):
    """The keys of states, sorted, and the rows of each: `rows[at[n]:at[n + 1]]`."""

    keys: Numbers
    at: Numbers
    rows: Labels


def reachable(steps: Steps) -> list[Numbers]:
    """The keys of the states to which moves lead before all is over, by number of steps that have run."""
    layers, waits, left = [np.zeros(1, np.int64)], np.zeros(0, np.int64), _MOST_NUMBERS
    while len(layers[-1]) or len(waits):
        run = runs_of(layers[-1], len(layers) - 1, steps)
        moves = moves_from(allowed(run, steps), steps)
        alone, open_ = moves[:, 2] < 0, still_open(run, moves, steps)
        keys = layers[-1][moves[:, 0]] + steps.weights[moves[:, 1]]
        keys += np.where(alone, 0, steps.weights[moves[:, 2]])
        layers.append(np.unique(np.concatenate([keys[alone & open_], waits])))
        waits = np.unique(keys[~alone & open_])
        left -= (steps.columns + 2 * len(steps.room)) * len(layers[-1])
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    return layers


@compiled
def still_open(run: Numbers, moves: Numbers, steps: Steps) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """After which moves the order is not over."""
    found, after = np.empty(len(moves), np.bool_), np.empty(run.shape[1], np.int64)
    for number in range(len(moves)):
        found[number] = not run_after(after, run[moves[number, 0]], moves[number, 1], moves[number, 2], steps)
    return found


def completions(
    walk: Walk, layers: Sequence[Numbers], rows: int = 1, reached: Sequence[Reached] = (), below: int = 0
) -> list[Rest]:
    """Of the states in these layers, by number of steps; without rows that end late from the earliest times reached."""
    steps, left, size = walk.steps, _MOST_NUMBERS, walk.steps.columns + 2 * len(walk.steps.room)
    if walk.longest + max(0, int(steps.behind.max())) >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    nothing = Rest(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros((0, size), np.int32))
    found, at_once = [nothing, nothing], max(1, _AT_ONCE // rows)
    for done in reversed(range(len(layers))):
        parts, least = [nothing], nothing.rows
        if reached and len(layers[done]):
            least = np.minimum.reduceat(reached[done].labels, reached[done].at[:-1], axis=0)
        for since in range(0, len(layers[done]), at_once):
            part = slice(since, since + at_once)
            parts.append(_part(layers[done][part], done, least[part], found[-1], found[-2], steps, below, rows))
        many = np.concatenate([np.diff(one.at) for one in parts])
        keys, own = np.concatenate([one.keys for one in parts]), np.concatenate([one.rows for one in parts])
        found.append(Rest(keys, np.append(0, np.cumsum(many)), own))
        left -= own.size
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    return found[:1:-1]


def _part(keys: Numbers, done: int, least: Labels, near: Rest, far: Rest, steps: Steps, below: int, rows: int) -> Rest:
    """Of some states of a layer, those that have rows."""
    run = runs_of(keys, done, steps)
    may = allowed(run, steps)
    moves = moves_from(may, steps)
    moves = moves[np.argsort(moves[:, 0], kind="stable")]
    many, own = rows_before(keys, run, may, moves, least, near, far, steps, below)
    keys, at = keys[many > 0], np.append(0, np.cumsum(many[many > 0]))
    if not len(keys) or rows == 1:
        return Rest(keys, np.arange(len(at)), np.minimum.reduceat(own, at[:-1], axis=0))
    counts, own = told_apart(own, np.arange(len(own)), at, rows)
    return Rest(keys, np.append(0, np.cumsum(counts)), own)


@compiled
def rows_before(
    keys: Numbers,
    run: Numbers,
    may: Numbers,
    moves: Numbers,
    least: Labels,
    near: Rest,
    far: Rest,
    steps: Steps,
    below: int,
) -> tuple[Numbers, Labels]:
    """How many rows the moves of each state have in front of those of states a step or a block later, and they."""
    size, free, total = near.rows.shape[1], steps.columns, 0
    many, found = np.zeros(len(keys), np.int64), np.empty((len(moves) + 1, size), np.int32)
    after, now, end = np.empty(run.shape[1], np.int64), np.empty(size, np.int64), np.full((1, size), NEVER, np.int32)
    for device in steps.counted:
        end[0, free + len(steps.room) + device] = 0
    for one, n, g in moves:
        then, since, until = end, 0, 1
        if not run_after(after, run[one], n, g, steps):
            then, since, until = near.rows, 0, 0
            others, key = (near.keys, keys[one] + steps.weights[n])
            if g >= 0:
                then, others, key = far.rows, far.keys, key + steps.weights[g]
            row = np.searchsorted(others, key)
            if row < len(others) and others[row] == key:
                since, until = (near.at[row], near.at[row + 1]) if g < 0 else (far.at[row], far.at[row + 1])
        behind = max(steps.behind[n], steps.behind[g] if g >= 0 else NOTHING)
        for row in range(since, until):
            back_over(now, then[row], n, g, behind, run[one], may[one, n], steps)
            if total == len(found):
                found = np.concatenate((found, found))
            in_time = True
            for place in range(size):
                found[total, place] = max(np.int64(NEVER), now[place])
                in_time = in_time and (not len(least) or least[one, place] + np.int64(found[total, place]) < below)
            many[one] += in_time
            total += in_time
    return many, found[:total].copy()


@inner
def back_over(now: Numbers, then: Labels, n: int, g: int, behind: int, run: Numbers, may: int, steps: Steps) -> None:
    """Fill in what follows each time before a move, of what follows those after it, and a micro-batch that is back."""
    free, device = steps.columns, steps.device[n]
    over = free + len(steps.room) + device
    takes, rest = (steps.ticks[n], steps.after[n]) if g < 0 else (steps.together[n, g], np.int64(0))
    for place in range(len(now)):
        now[place] = then[place] if place >= free else NEVER
    ends = max(np.int64(then[free + device]), then[over] + rest, behind)
    last = 0
    while last < len(run):
        last = steps.last[last]
        shift = 1 if last in (n, g) else 0
        for which in range(shift, run[steps.first[last]] - run[last]):
            now[steps.column[last] + which] = then[steps.column[last] + which - shift]
        last += 1
    for step in (n, g):
        if step >= 0 and step != steps.last[step]:
            shift = 1 if steps.last[step] in (n, g) else 0
            ends = max(ends, np.int64(then[place_of(step, run, steps) - shift]))
    start = takes + ends
    for place in range(free, len(now)):
        start = max(start, now[place])  # nothing starts before this move does
    for step in (n, g):
        if step >= 0 and step != steps.first[step]:
            now[place_of(step, run, steps)] = NEVER if may == LONG_AGO else start + steps.lag[step]
    if may != LONG_AGO:
        now[free + device] = start
        now[over] += takes + rest
        if may >= 0:
            now[over] = max(now[over], start - may * steps.weight[device])
