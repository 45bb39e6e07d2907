"""Times, memory and counts as people read them: in the file's units, without exponents or idle zeros."""

from __future__ import annotations

from fractions import Fraction

from pipesched.problem import Problem


def amount(problem: Problem, ticks: int | Fraction) -> str:
    """A time in the file's unit."""
    return f"{plain(problem.in_units(ticks))} {problem.time_unit}".rstrip()


def memory_amount(problem: Problem, level: int) -> str:
    """A level of memory in the file's unit, without its name."""
    return plain(float(level * problem.memory.resolution))


def memory_text(problem: Problem, level: int) -> str:
    """A level of memory with its unit."""
    number, unit = memory_amount(problem, level), problem.memory.unit
    return f"{number} {'activation' if (number, unit) == ('1', 'activations') else unit}"


def counted(number: int, noun: str) -> str:
    """So many of something: `1 step`, `2 steps`."""
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{ending}"


def size(problem: Problem) -> str:
    """How large a problem is, for titles."""
    return f"{counted(problem.devices, 'device')}, {counted(problem.microbatches, 'micro-batch')}"


def plain(number: float) -> str:
    """A number with up to six decimals."""
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
