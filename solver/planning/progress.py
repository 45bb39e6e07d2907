"""Progress reports of a plan search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class PlanProgress:
    """A moment: seconds, the best value and the bound in the file's unit, placements settled, and what is under way."""

    seconds: float
    value: Fraction | None
    lower_bound: Fraction
    settled: int
    choices: int
    phase: str


Report = Callable[[PlanProgress], None]
