"""Ticks or memory of stages as a problem file writes them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pipesched.files.exact_numbers import as_number
from pipesched.problem.problem import Problem


def by_stage(problem: Problem, values: Sequence[int | None], step: Fraction) -> object:
    """One number where all are alike, else a list with one a stage, or the list of its pieces."""
    count = problem.sequence_chunks
    found = numbers(values, step)
    if count == 1 or not isinstance(found, list):
        return found
    return [found[first : first + count] for first in range(0, len(found), count)]


def numbers(values: Sequence[int | None], step: Fraction) -> object:
    """One number where all are alike, else the list."""
    found = [as_number(x * step) for x in values if x is not None]
    return found[0] if len(set(found)) == 1 else found
