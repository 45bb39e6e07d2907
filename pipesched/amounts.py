"""Times and memory as people read them: in the file's units, without exponents or idle zeros."""

from __future__ import annotations

from fractions import Fraction

from pipesched.problem import Problem


def amount(problem: Problem, ticks: int | Fraction) -> str:
    """A time in the file's unit."""
    return f"{plain(problem.in_units(ticks))} {problem.time_unit}".rstrip()


def memory_amount(problem: Problem, level: int) -> str:
    """A level of memory in the file's unit, without its name."""
    return plain(float(level * problem.memory.resolution))


def plain(number: float) -> str:
    """A number with up to six decimals."""
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
