"""Progress reports of a plan search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class PlanProgress:
    """State of a plan search at one moment.

    `seconds` since the start; best value and lower bound in the file's unit; number of placements settled, of all
    `choices`; and the step under way.
    """

    seconds: float
    value: Fraction | None
    lower_bound: Fraction
    settled: int
    choices: int
    phase: str


Report = Callable[[PlanProgress], None]
