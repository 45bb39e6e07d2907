"""The least memory that allows the best time, or a time within a share of it, with a lower bound on that memory."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pipesched.problem.attainable_spans import Value
from pipesched.results.analysis.memory_scale import MemoryScale


@dataclass(frozen=True)
class LeastMemory:
    """The least memory found for a value of at most `allowed` ticks; levels and ticks are those of the scale's problem.

    `allowed` is `best` times (1 + `within`), rounded down to a value that a schedule can have. `level` is the least
    found, `lower_bound` proved: no schedule within `allowed` needs less; `why` is the argument. `best` is the best
    value found, `before` the level of the schedule with which the search began. `interrupted`: the user stopped the
    search.
    """

    scale: MemoryScale
    within: Fraction
    best: Value
    allowed: Value
    before: Fraction
    level: Fraction
    lower_bound: Fraction
    why: str
    interrupted: bool = False

    @property
    def proved(self) -> bool:
        return self.level == self.lower_bound

    def document(self) -> dict[str, object]:
        """Return the object under `least_memory` of `solve --json`.

        Numbers are floats. `value`, `lower_bound` and `before` are memory, in the file's unit or as shares of
        capacities (`by_share`); `best_value` and `allowed_value` are times in the file's unit, `within` is a share.
        `proved` is True if less is not enough, and `text` the argument of the bound.
        """
        scale, problem = self.scale, self.scale.problem
        return {
            "within": float(self.within),
            "best_value": problem.in_units(self.best),
            "allowed_value": problem.in_units(self.allowed),
            "by_share": scale.by_share,
            "before": float(self.before),
            "value": float(self.level),
            "lower_bound": float(self.lower_bound),
            "proved": self.proved,
            "text": self.why,
        }
