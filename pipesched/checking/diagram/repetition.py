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
    run = keys[:, None] // np.array([(steps.admitted + 1) ** n for n in range(len(steps.ticks))], np.int64)
    run %= steps.admitted + 1
    return np.asarray(run + (done - run.sum(axis=1, keepdims=True)) // len(steps.ticks))


def repeated(rounds: list[Reached], done: int, most: int, steps: Steps) -> tuple[int, int]:
    """How many rounds to skip, `most` at most, and how much later all is after them.

    Moves keep an order of times. So if all labels of each state are so much later than some that it had a number of
    rounds ago, they are as much later again after as many rounds more.
    """
    best = Fraction(0), 0, 0, 0
    under_way = runs_of(rounds[-1].keys, done, steps)
    for back in (back for back in _LOOK_BACK if back <= min(most, len(rounds) - 1)):
        later = _later(rounds[-1 - back], rounds[-1], under_way[:, 0] - under_way[:, -1], steps.admitted)
        repeats = most // back
        best = max(best, (Fraction(later, back), -back, repeats * back, repeats * later))
    return best[2:] if best[0] > 0 else (0, 0)


def _later(before: Reached, after: Reached, under_way: Numbers, admitted: int) -> int:
    """By how much all labels after are later than some before, at least; 0 where a state had none."""
    found = list[int]()
    for n, key in enumerate(after.keys):
        at = int(np.searchsorted(before.keys, key))
        if at == len(before.keys) or before.keys[at] != key:
            return 0
        counted = [*range(under_way[n]), *range(admitted, after.labels.shape[1])]
        old = before.labels[before.at[at] : before.at[at + 1], counted]
        new = after.labels[after.at[n] : after.at[n + 1], counted]
        found.append(min(max(int((row - one).min()) for one in old) for row in new))
    return min(found)
