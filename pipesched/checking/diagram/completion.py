"""The completion bound: how long the rest of an order takes at least, found from the end, for each state.

A time of a label is followed by a step that waits for it, and that step by what follows its own end; a block is a step
by which two end. Of all moves that may be next, for each time the least is taken, so that no order counts as longer
than it is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.checking.diagram.moves import NO, Labels, allowed
from pipesched.checking.diagram.walk import Numbers, Steps, Walk
from pipesched.checking.finding import NotCoveredError
from pipesched.compiled import compiled, inner

# What follows a time that holds nothing up; what follows where no end can be reached; the most numbers there may be.
NEVER, FOREVER, _MOST_NUMBERS = -(2**29), 2**29, 60_000_000


class Layer(NamedTuple):
    """The keys of states, sorted, and what follows each of their times."""

    keys: Numbers
    follows: Labels


def completions(walk: Walk) -> list[Layer]:
    """By number of steps that have run."""
    if walk.longest >= FOREVER:
        raise NotCoveredError("numbers of too many digits")
    steps, left = walk.steps, _MOST_NUMBERS
    size, more = steps.admitted + 2 * len(steps.room), key_steps(steps)
    runs, mays, keys = [np.zeros((1, len(steps.ticks)), np.int64)], list[Numbers](), [np.zeros(1, np.int64)]
    waits = runs[0][:0], keys[0][:0]
    for _ in range(steps.microbatches * len(steps.ticks)):
        mays.append(allowed(runs[-1], steps))
        moves = moves_from(mays[-1], steps)
        after, key = runs[-1][moves[:, 0]], keys[-1][moves[:, 0]] + more[moves[:, 1]]
        after[np.arange(len(moves)), moves[:, 1]] += 1
        block = np.flatnonzero(moves[:, 2] >= 0)
        after[block, moves[block, 2]] += 1
        key[block] += more[moves[block, 2]]
        one = moves[:, 2] < 0
        found, which = np.unique(np.concatenate([key[one], waits[1]]), return_index=True)
        runs.append(np.concatenate([after[one], waits[0]])[which])
        keys.append(found)
        waits = after[block], key[block]
        left -= size * len(found)
        if left < 0:
            raise NotCoveredError("too many orders to try them all")
    last, counted = np.full((1, size), NEVER, np.int32), steps.admitted + len(steps.room)
    last[0, counted : counted + walk.counted] = 0
    layers = [Layer(keys[0][:0], last[:0]), Layer(keys[-1], last)]
    for done in reversed(range(len(mays))):
        before = one_before(runs[done], mays[done], keys[done], more, layers[-1], layers[-2], steps)
        layers.append(Layer(keys[done], before))
    return layers[:0:-1]


def key_weights(steps: Steps) -> Numbers:
    """What the runs of each step, less those of the last, count in the key of a state."""
    return np.array([(steps.admitted + 1) ** n for n in range(len(steps.ticks))], np.int64)


def key_steps(steps: Steps) -> Numbers:
    """By how much a run of each step raises the key."""
    weights = key_weights(steps)
    return np.append(weights[:-1], -weights[:-1].sum())


def moves_from(may: Numbers, steps: Steps) -> Numbers:
    """What may be next: a state's number, a step, and the gradient in a block with it, or -1."""
    alone = np.argwhere(may > NO)
    both = (may[:, :, None] > NO) & (may[:, None, :] > NO)
    blocks = np.argwhere(both[:, : len(steps.together)] & (steps.together >= 0))
    return np.concatenate([np.column_stack([alone, np.full(len(alone), -1)]), blocks])


@compiled
def one_before(
    run: Numbers, may: Numbers, keys: Numbers, more: Numbers, near: Layer, far: Layer, steps: Steps
) -> Labels:
    """What follows the times of states that are a step before the near ones, or a block before the far ones."""
    size = near.follows.shape[1]
    found, now = np.full((len(run), size), FOREVER, np.int32), np.zeros(size, np.int64)
    for one in range(len(run)):
        for n in range(run.shape[1]):
            if may[one, n] == NO:
                continue
            then = near.follows[np.searchsorted(near.keys, keys[one] + more[n])]
            back_over(now, then, n, -1, run[one], may[one, n], steps)
            _lower(found[one], now)
            for g in range(run.shape[1] if n < len(steps.together) else 0):
                if steps.together[n, g] >= 0 and may[one, g] > NO:
                    then = far.follows[np.searchsorted(far.keys, keys[one] + more[n] + more[g])]
                    back_over(now, then, n, g, run[one], may[one, n], steps)
                    _lower(found[one], now)
    return found


@inner
def _lower(found: Labels, now: Numbers) -> None:
    for place in range(len(now)):
        found[place] = max(NEVER, min(np.int64(found[place]), now[place]))


@inner
def back_over(now: Numbers, then: Labels, n: int, g: int, run: Numbers, may: int, steps: Steps) -> None:
    """Fill in what follows each time before a move, of what follows those after it."""
    free, device, last = steps.admitted, steps.device[n], len(run) - 1
    over, shift = free + len(steps.room) + device, 1 if last in (n, g) else 0
    takes, rest = (steps.ticks[n], steps.after[n]) if g < 0 else (steps.together[n, g], np.int64(0))
    own = run[n] - run[-1]
    ends = max(np.int64(then[free + device]), then[over] + rest)
    if n != last:
        ends = max(ends, np.int64(then[own - shift]))
    if g >= 0 and g != last:
        ends = max(ends, np.int64(then[run[g] - run[-1] - shift]))
    start = takes + ends
    under_way = run[0] - run[-1]
    for place in range(len(now)):
        now[place] = NEVER
        if place >= free:
            now[place] = then[place]
            start = max(start, now[place])  # nothing starts before this move does
        elif shift <= place < under_way:
            now[place] = then[place - shift]
    if n > 0:
        now[own] = start + steps.before[n]
    if g >= 0:
        now[run[g] - run[-1]] = start + steps.before[g]
    now[free + device] = start
    now[over] += takes + rest
    if may >= 0:
        now[over] = max(now[over], start - may * steps.weight[device])
