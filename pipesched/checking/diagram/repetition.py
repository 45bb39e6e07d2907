"""When rounds of steps repeat: how much later all is after many, without trying their orders."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from pipesched.checking.diagram.moves import Layer
from pipesched.checking.diagram.walk import NONE, Numbers, Steps, runs_of

# Rounds, in each of which every step runs once, until repetitions are looked for, and of how many rounds.
ROUNDS, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)


def may_repeat(steps: Steps) -> bool:
    """With one chain and no blocks, and if time 0 is not that of a later step: what was before that is not repeated."""
    one_chain = steps.last[0] + 1 == len(steps.ticks)
    return bool(one_chain and (steps.together < 0).all() and steps.owner in (NONE, steps.device[0]))


def repeated(rounds: list[Layer], done: int, steps: Steps) -> tuple[int, int]:
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


def _later(before: Layer, after: Layer, under_way: Numbers, columns: int) -> int:
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
