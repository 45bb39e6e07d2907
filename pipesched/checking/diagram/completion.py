"""Completion bounds: the least remaining time of an order from each state, computed backwards.

A time of a label is followed by a step that waits for it, and that step by what follows its own end; a block is a step
by which two end. Each continuation has such a row of what follows each time. Of the rows of a state a given number are
kept distinct, and similar ones are replaced by their minimum; with a single row each entry is the minimum over all
continuations. So no order counts as longer than it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipesched.checking.diagram.labels import prune_and_merge
from pipesched.checking.diagram.model import Labels, Layer, Numbers
from pipesched.checking.diagram.moves import LONG_AGO, moves_from, place_of
from pipesched.checking.diagram.walk import Steps, Walk, runs_of
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner
from pipesched.deadline import ask, asking

# What follows a time that holds nothing up; numbers of more digits; the most numbers there may be.
NEVER, FOREVER, _MOST_NUMBERS = -(2**29), 2**29, 60_000_000


def reachable(steps: Steps) -> list[Layer]:
    """Return the keys of the states that some order reaches before its end.

    They are a list by number of steps run, of layers without labels, whose `at` is empty. Raises `NotCoveredError` if
    there are too many.
    """
    none, left = np.zeros(0, np.int64), _MOST_NUMBERS
    keys, waits, layers = np.zeros(1, np.int64), none, list[Layer]()
    while len(keys) or len(waits):
        ask()
        layers.append(Layer(keys, none, np.zeros((0, steps.columns + 2 * len(steps.room)), np.int32)))
        moves = moves_from(keys, runs_of(keys, len(layers) - 1, steps), steps)
        moves, left = moves[moves[:, 4] == 0], left - layers[-1].labels.shape[1] * len(keys)
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
        keys = np.unique(np.concatenate([moves[moves[:, 2] < 0, 5], waits]))
        waits = moves[moves[:, 2] >= 0, 5]
    return layers


def completions(walk: Walk, layers: Sequence[Layer], rows: int = 1, threshold: int = 0) -> list[Layer]:
    """Return for each layer the completion bounds of its states from which an order can end, in rows.

    `layers` are all layers of `walk`, by number of steps run, and so is the result. A row has the least remaining ticks
    after each time of a label, `NEVER` if nothing waits for it. `rows` is the most kept for each state. Where layers
    have labels, rows are omitted with which every label ends at `threshold` ticks or later. Raises `NotCoveredError` if
    numbers are too large or orders too many.
    """
    steps, left = walk.steps, _MOST_NUMBERS
    if walk.longest + max(0, int(steps.tail.max())) >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    nothing = Layer(np.zeros(0, np.int64), np.zeros(1, np.int64), layers[0].labels[:0])
    found = [nothing, nothing]
    for done in asking(reversed(range(len(layers)))):
        keys, at, labels = layers[done]
        run = runs_of(keys, done, steps)
        least = np.minimum.reduceat(labels, at[:-1], axis=0) if len(labels) else labels
        many, bounds = rows_before(run, moves_from(keys, run, steps), least, found[-1], found[-2], steps, threshold)
        keys, at = keys[many > 0], np.append(0, np.cumsum(many[many > 0]))
        if rows > 1:
            order = np.lexsort((bounds.sum(axis=1), np.repeat(np.arange(len(keys)), np.diff(at))))
            counts, bounds = prune_and_merge(bounds, order, at, rows)
            at = np.append(0, np.cumsum(counts))
        elif len(keys):
            bounds, at = np.minimum.reduceat(bounds, at[:-1], axis=0), np.arange(len(at))
        found.append(Layer(keys, at, bounds))
        left -= bounds.size
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    return found[:1:-1]


@compiled
def rows_before(
    run: Numbers, moves: Numbers, least: Labels, near: Layer, far: Layer, steps: Steps, threshold: int
) -> tuple[Numbers, Labels]:
    """Return the completion bounds of a layer's states: the number of rows of each state, and all rows.

    They are computed from the rows of the states after one move. A row has the least remaining ticks after each time of
    a label, on one continuation of the order or the least over several. `near` has the rows of the states one step
    later, `far` those of the states two steps (a block) later. `run` has by state and step how often the step has run.
    `moves` has a row for each move, sorted by state: state, step, gradient in a block with it or -1, ticks of weight
    work that may be pending, 1 if the order is over, key of the next state, and ticks after the last step of a
    micro-batch. If `least` is not empty, it has by state the least of each time; rows with which one of these ends at
    `threshold` or later are omitted.
    """
    size, total, over_all = near.labels.shape[1], 0, steps.columns + len(steps.room)
    many, found = np.zeros(len(run), np.int64), np.empty((len(moves) + 1, size), np.int32)
    now, end = np.empty(size, np.int64), np.full((1, size), NEVER, np.int32)
    for device in steps.counted:
        end[0, over_all + device] = 0
    for one, n, g, may, over, key, tail in moves:
        then, since, until = end, 0, 1
        if not over:
            keys, at, then = (near.keys, near.at, near.labels) if g < 0 else (far.keys, far.at, far.labels)
            state = np.searchsorted(keys, key)
            if state == len(keys) or keys[state] != key:
                continue
            since, until = at[state], at[state + 1]
        for row in range(since, until):
            back_over(now, then[row], n, g, tail, run[one], may, steps)
            if total == len(found):
                found = np.concatenate((found, found))
            in_time = True
            for place in range(size):
                found[total, place] = max(np.int64(NEVER), now[place])
                in_time = in_time and (not len(least) or least[one, place] + np.int64(found[total, place]) < threshold)
            many[one] += in_time
            total += in_time
    return many, found[:total].copy()


@inner
def back_over(now: Numbers, then: Labels, n: int, g: int, tail: int, run: Numbers, may: int, steps: Steps) -> None:
    """Fill `now`, the remaining ticks after each time of a label before a move, from `then`, those after the move.

    The move is step `n`, or the block of `n` and `g` (else -1). `tail` are the ticks until a micro-batch that ends its
    chain with the move is done, `run` has by step how often it ran before, and `may` are the ticks of weight work that
    may be pending (-1: any; `LONG_AGO`: the move may have ended before the owner's time begins).
    """
    free, device, last = steps.columns, steps.device[n], 0
    over = free + len(steps.room) + device
    takes, weight_ticks = (steps.ticks[n], steps.after[n]) if g < 0 else (steps.together[n, g], np.int64(0))
    ends = max(np.int64(then[free + device]), then[over] + weight_ticks, tail)
    for step in (n, g):
        if step >= 0 and step != steps.last[step]:
            shift = 1 if steps.last[step] in (n, g) else 0
            ends = max(ends, np.int64(then[place_of(step, run, steps) - shift]))
    start = takes + ends
    for place in range(len(now)):
        now[place] = then[place] if place >= free else NEVER
        start = max(start, now[place])  # nothing starts before this move does
    while last < len(run):
        last = steps.last[last]
        shift, column = 1 if last in (n, g) else 0, steps.column[last]
        for place in range(column + shift, column + run[steps.first[last]] - run[last]):
            now[place] = then[place - shift]
        last += 1
    for step in (n, g):
        if step >= 0 and step != steps.first[step]:
            now[place_of(step, run, steps)] = NEVER if may == LONG_AGO else start + steps.lag[step]
    if may != LONG_AGO:
        now[free + device] = start
        now[over] += takes + weight_ticks
        if may >= 0:
            now[over] = max(now[over], start - may)
