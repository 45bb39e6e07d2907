"""The common step of a file's numbers: exact where sums of multiples fit into 64 bits, else rounded.

Rounded numbers keep 1e-9 of the largest, far finer than measured times repeat to.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import floor, log10

from pipesched.files.exact_numbers import common_step

# Sums of so many steps leave room in 64 bits for finer ticks, and for the sums that CP-SAT makes of them.
MOST_STEPS = 2**53
# No number is larger, in steps.
LARGEST = 2**60
# The largest rounded number has one digit more than this.
_DIGITS = 9


def step_of(
    numbers: Sequence[Fraction], total: Fraction, also: Sequence[Fraction] = (), most_steps: int = MOST_STEPS
) -> tuple[Fraction, bool]:
    """Return the step of which all numbers become multiples, and True if they must be rounded to it.

    `total` is the largest sum of numbers; `also` are numbers in the same step that do not set its precision. The step
    divides all numbers if `total` is then at most `most_steps` steps, or fewer than with rounding. Otherwise it is the
    power of ten that gives the largest number ten digits, so that reading rounded numbers gives the same step again.
    """
    exact = common_step([*numbers, *also])
    largest = max(map(abs, numbers), default=Fraction(0))
    if not largest or total <= most_steps * exact:
        return exact, False
    exponent = floor(log10(largest))
    # The logarithm is a float, which may lie on the wrong side of a power of ten.
    exponent += (largest >= Fraction(10) ** (exponent + 1)) - (largest < Fraction(10) ** exponent)
    step = Fraction(10) ** (exponent - _DIGITS)
    if round(largest / step) >= 10 ** (_DIGITS + 1):
        step *= 10
    return (step, True) if step > exact else (exact, False)


def short(step: Fraction) -> str:
    """Return a number as text of up to six digits, for a note."""
    return f"{float(step):g}"
