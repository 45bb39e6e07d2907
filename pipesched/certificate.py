"""A certificate is a lower bound together with the argument that proves it, in words a person can check."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.problem import Problem


@dataclass(frozen=True)
class Certificate:
    """No schedule of the problem is below `value` ticks.

    `kind` names the argument. `device` is the one it speaks of, None if it speaks of the whole.
    """

    kind: str
    value: int
    text: str
    device: int | None = None


def amount(problem: Problem, ticks: int | Fraction) -> str:
    """Ticks as a certificate or a table writes them: exact decimals and the file's unit."""
    return f"{plain(problem.in_units(ticks))} {problem.time_unit}".rstrip()


def plain(number: float) -> str:
    """A number with up to six decimals, none of them idle zeros, and no exponent."""
    return f"{number:.6f}".rstrip("0").rstrip(".") if number % 1 else f"{number:.0f}"
