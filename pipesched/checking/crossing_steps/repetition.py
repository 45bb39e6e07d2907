"""When rounds of steps repeat: how much later all is after many, without trying their orders."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from pipesched.checking.crossing_steps.argument import Numbers

# Rounds, in each of which every step runs once, until repetitions are looked for, and of how many rounds.
AFTER, _LOOK_BACK = 96, (*range(1, 17), 24, 32, 48, 64, 80)


class Reached(NamedTuple):
    """How often each step has run, and the times of the orders that have come so far: `times[at[n]:at[n + 1]]`."""

    run: Numbers
    at: Numbers
    times: Numbers


def repeated(rounds: list[Reached], admitted: int, most: int) -> tuple[int, int]:
    """How many rounds to skip, `most` at most, and how much later all is after them.

    Steps keep an order of times. So if all times of those that have come some way are so much later than some that had
    come as far a number of rounds ago, they are as much later again after as many rounds more.
    """
    best = Fraction(0), 0, 0, 0
    for back in (back for back in _LOOK_BACK if back <= min(most, len(rounds) - 1)):
        later = _later(rounds[-1 - back], rounds[-1], admitted)
        repeats = most // back
        best = max(best, (Fraction(later, back), -back, repeats * back, repeats * later))
    return best[2:] if best[0] > 0 else (0, 0)


def _later(before: Reached, after: Reached, admitted: int) -> int:
    """By how much all times after are later than some before, at least; 0 or less where there were none."""
    found = {tuple(run - run[-1]): n for n, run in enumerate(before.run)}
    least: int | None = None
    for n, run in enumerate(after.run):
        at = found.get(tuple(run - run[-1]))
        if at is None:
            return 0
        counted = [*range(run[0] - run[-1]), *range(admitted, after.times.shape[1])]
        old = before.times[before.at[at] : before.at[at + 1], counted]
        new = after.times[after.at[n] : after.at[n + 1], counted]
        later = min(max(int((row - one).min()) for one in old) for row in new)
        least = later if least is None else min(least, later)
    return least or 0
