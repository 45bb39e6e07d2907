"""When rounds of steps repeat: how much later all is after many, without trying their orders."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pipesched.checking.diagram.moves import Labels
from pipesched.checking.diagram.walk import Numbers, Steps

# Rounds, in each of which every step runs once, until repetitions are looked for, and of how many rounds.
ROUNDS, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)


class Reached(NamedTuple):
    """The keys of states, sorted, and the labels of each: `labels[at[n]:at[n + 1]]`."""

    keys: Numbers
    at: Numbers
    labels: Labels


def runs_of(keys: Numbers, done: int, steps: Steps) -> Numbers:
    """How often each step has run in states with these keys, with so many steps run in all."""
    run, left, first = np.zeros((len(keys), len(steps.ticks)), np.int64), keys, steps.last[0]
    for n in range(len(steps.ticks)):
        if n == first:
            continue
        base = (steps.number if n == steps.last[n] else steps.admitted)[n] + 1
        run[:, n], left = left % base, left // base
        if n == steps.last[n]:
            run[:, steps.first[n] : n] += run[:, n:][:, :1]
    run[:, : first + 1] += (done - run.sum(axis=1, keepdims=True)) // (first + 1)
    return run


def repeat(steps: Steps) -> bool:
    """Whether rounds are looked at: of one chain, without blocks, where time 0 is no other step's than the first."""
    one_chain = steps.last[0] == len(steps.ticks) - 1
    return bool(one_chain and (steps.together < 0).all() and steps.owner in (-1, steps.device[0]))


def repeated(rounds: list[Reached], done: int, steps: Steps) -> tuple[int, int]:
    """How many rounds to skip, and how much later all is after them.

    Moves keep an order of times. So if all labels of each state are so much later than some that it had a number of
    rounds ago, they are as much later again after as many rounds more.
    """
    best, most = (Fraction(0), 0, 0, 0), int(steps.number[0] - done // len(steps.ticks) - steps.admitted[0] - 1)
    run = runs_of(rounds[-1].keys, done, steps)
    for back in (back for back in _LOOK_BACK if back <= min(most, len(rounds) - 1)):
        later = _later(rounds[-1 - back], rounds[-1], run[:, 0] - run[:, -1], steps.columns)
        repeats = most // back
        best = max(best, (Fraction(later, back), -back, repeats * back, repeats * later))
    return best[2:] if best[0] > 0 else (0, 0)


def _later(before: Reached, after: Reached, under_way: Numbers, columns: int) -> int:
    """By how much all labels after are later than some before, at least; 0 where a state had none."""
    found = list[int]()
    for n, key in enumerate(after.keys):
        at = int(np.searchsorted(before.keys, key))
        if at == len(before.keys) or before.keys[at] != key:
            return 0
        counted = [*range(under_way[n]), *range(columns, after.labels.shape[1])]
        old = before.labels[before.at[at] : before.at[at + 1], counted]
        new = after.labels[after.at[n] : after.at[n + 1], counted]
        found.append(min(max(int((row - one).min()) for one in old) for row in new))
    return min(found)
