"""Formatting of times, memory and counts: in the file's units, without exponents or trailing zeros."""

from __future__ import annotations

import unicodedata
from fractions import Fraction

from pipesched.problem.pass_names import microbatches_text
from pipesched.problem.problem import Problem


def amount(problem: Problem, ticks: int | Fraction) -> str:
    """A time in the file's unit."""
    return with_unit(problem.in_units(ticks), problem.time_unit)


def with_unit(number: float | Fraction, unit: str) -> str:
    """A number and its unit, which may have no name."""
    return f"{plain(float(number))} {unit}".rstrip()


def memory_amount(problem: Problem, level: int) -> str:
    """A level of memory in the file's unit, without its name."""
    return plain(float(level * problem.resolution))


def memory_text(problem: Problem, level: int) -> str:
    """A level of memory with its unit."""
    number, unit = memory_amount(problem, level), problem.memory_unit
    return f"{number} {'activation' if (number, unit) == ('1', 'activations') else unit}"


def peak_of(peak: Fraction, capacity: Fraction, decimals: int = 6) -> str:
    """A peak and its capacity in one unit, as `5.9 of 6`: rounded down where it fits and up where it does not.

    So the text never looks as if a peak were above its capacity that is not, or within it that is above.
    """
    scale, over = 10**decimals, peak > capacity
    shown = Fraction(-(-peak * scale // 1) if over else peak * scale // 1, scale)
    room = Fraction(capacity * 10**6 // 1, 10**6) if over else Fraction(capacity * scale // 1, scale)
    return f"{plain(float(shown))} of {plain(float(room))}"


def counted(number: int, noun: str) -> str:
    """A count with its noun: `1 step`, `2 steps`."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "ss")) else "s"
    return f"{number} {noun}{ending}"


def size(problem: Problem) -> str:
    """The size of a problem, for titles."""
    return f"{counted(problem.devices, 'device')}, {microbatches_text(problem)}"


def plain(number: float) -> str:
    """A number with up to six decimals."""
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def visible(text: str) -> str:
    """Text that a terminal shows as it is: control characters and those that turn its direction become escapes."""
    return "".join(c if unicodedata.category(c)[0] != "C" or c == "\n" else repr(c)[1:-1] for c in text)
