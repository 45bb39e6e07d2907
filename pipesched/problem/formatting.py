"""Text of times, memory and counts: in the file's units, without exponents or trailing zeros."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from fractions import Fraction

from pipesched.problem.pass_names import microbatches_text
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import MemorySteps, StageId, Ticks


def amount(problem: Problem, ticks: Ticks | Fraction) -> str:
    """Return a time in ticks as text in the file's unit, rounded to six decimals, with the unit's name: `12.5 ms`."""
    return with_unit(problem.in_units(ticks), problem.time_unit)


def with_unit(number: float | Fraction, unit: str) -> str:
    """Return a number as text, followed by its unit, which may be empty."""
    return f"{plain(float(number))} {unit}".rstrip()


def memory_amount(problem: Problem, level: MemorySteps) -> str:
    """Return an amount of memory, given in steps, as text in the file's unit, without the unit's name.

    Steps are those of the resolution. The text is rounded to six decimals.
    """
    return plain(float(level * problem.resolution))


def memory_text(problem: Problem, level: MemorySteps) -> str:
    """Return an amount of memory, given in steps of the resolution, as text in the file's unit, with its name."""
    number, unit = memory_amount(problem, level), problem.memory_unit
    return f"{number} {'activation' if (number, unit) == ('1', 'activations') else unit}"


def peak_of(peak: Fraction, capacity: Fraction, decimals: int = 6) -> str:
    """Return a peak and its capacity as text such as `5.9 of 6`.

    Both are in the file's unit. A peak that fits is rounded down to `decimals` decimals, at most 6, and so is its
    capacity; one that does not fit is rounded up, and its capacity down to 6 decimals, so that the text never
    contradicts the fact.
    """
    scale, over = 10**decimals, peak > capacity
    shown = Fraction(-(-peak * scale // 1) if over else peak * scale // 1, scale)
    room = Fraction(capacity * 10**6 // 1, 10**6) if over else Fraction(capacity * scale // 1, scale)
    return f"{plain(float(shown))} of {plain(float(room))}"


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: `1 step`, `2 steps`."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "ss")) else "s"
    return f"{number} {noun}{ending}"


def size(problem: Problem) -> str:
    """Return the size of a problem as text for titles: `4 devices, 8 micro-batches`."""
    return f"{counted(problem.devices, 'device')}, {microbatches_text(problem)}"


def plain(number: float) -> str:
    """Return a number as text, rounded to the nearest of at most six decimals, without trailing zeros."""
    text = f"{number:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def visible(text: str) -> str:
    """Return text with control, format, private and unassigned characters as escapes of Python, such as `\\x1b`.

    These are Unicode's categories C, such as those that change the direction of text. Only `\\n` stays; a backslash of
    the text is not doubled.
    """
    return "".join(c if unicodedata.category(c)[0] != "C" or c == "\n" else repr(c)[1:-1] for c in text)


def listed_stages(stages: Sequence[StageId]) -> str:
    """Return "stage 1", or "stages 1, 2"."""
    return f"stage{'' if len(stages) == 1 else 's'} {', '.join(map(str, stages))}"
