"""The common step of a file's numbers: exact where sums of multiples fit into 64 bits, else rounded.

Rounded numbers keep ten digits of the largest, fewer where sums are very long. Repeated measurements of one time differ
by far more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, log10
from typing import NamedTuple

from pipesched.files.exact_numbers import common_step

# Sums of so many steps leave room in 64 bits for finer ticks, and for the sums that CP-SAT makes of them.
MOST_STEPS = 2**53
# No number is larger, in steps.
LARGEST = 2**60
# The largest rounded number has one digit more than this.
_DIGITS = 9
_ZERO = Fraction(0)


class Step(NamedTuple):
    """The step of which a file's numbers are multiples: `size`, in the file's unit.

    Without `rounds` all of them are exact multiples, and `size` is their largest common step. With `rounds` they become
    multiples by rounding, and `size` is a power of ten. `largest` is the greatest absolute value, in the file's unit,
    of the numbers that decide how fine the step is, 0 if there are none. Capacities and amounts of memory that are
    always in use do not decide that: they only become multiples too.
    """

    size: Fraction
    rounds: bool
    largest: Fraction

    def note(self, what: str) -> list[str]:
        """Return text on the rounding of `what` in the plural, such as "times"; empty if nothing is rounded."""
        if not (self.rounds and self.largest):
            return []
        return [f"{what} to multiples of {short(self.size)}, {float(self.size / self.largest):.2g} of the largest"]


def step_of(
    numbers: Sequence[Fraction],
    total: Fraction,
    limit: Fraction = _ZERO,
    also: Sequence[Fraction] = (),
    most_steps: int = MOST_STEPS,
) -> Step:
    """Return the step of which all numbers become multiples.

    `total` is the largest sum of numbers, `limit` the largest limit on such a sum; `also` are numbers that become
    multiples of the step too, but do not set its precision. If `total` and `limit` together are at most `most_steps` of
    the largest step that divides all numbers, it is that step, and nothing is rounded. Otherwise it is a power of ten:
    the one with which the largest number has ten digits, or a larger one if `total` would be more than half as many
    steps; if that is no larger than the exact step, the exact one is returned. Reading rounded numbers again therefore
    gives the same step, as long as fewer than `most_steps` numbers are added up.
    """
    exact = common_step([*numbers, *also])
    largest = max(map(abs, numbers), default=Fraction(0))
    if not largest or total + limit <= most_steps * exact:
        return Step(exact, False, largest)
    exponent = floor(log10(largest))
    # The logarithm is a float, which may lie on the wrong side of a power of ten.
    exponent += (largest >= Fraction(10) ** (exponent + 1)) - (largest < Fraction(10) ** exponent)
    step = Fraction(10) ** (exponent - _DIGITS)
    if round(largest / step) >= 10 ** (_DIGITS + 1):
        step *= 10
    while 2 * total > most_steps * step:
        step *= 10
    return Step(step, True, largest) if step > exact else Step(exact, False, largest)


def short(step: Fraction) -> str:
    """Return a step as text of up to six digits, for a note."""
    return f"{float(step):g}"
