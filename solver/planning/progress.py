"""Progress reports of a plan search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class PlanProgress:
    """State of a plan search at one moment.

    `seconds` are since its start. `value` is that of the best plan (None: none yet), in the file's unit like the
    `lower_bound` (0: none yet, or no plan exists). `settled` of the `choices` placements need no further search.
    `phase` is the step under way.
    """

    seconds: float
    value: Fraction | None
    lower_bound: Fraction
    settled: int
    choices: int
    phase: str


Report = Callable[[PlanProgress], None]
