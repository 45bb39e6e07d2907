"""What a solve brings back: the best schedule found, the bound proved, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipesched.certificate import Certificate
from pipesched.metrics import Metrics
from pipesched.problem import Problem
from pipesched.timeline import Timeline


class Status(StrEnum):
    """How far the answer is proved."""

    OPTIMAL = "optimal"  # value = lower bound
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"  # a limit passed with no schedule found


@dataclass(frozen=True)
class Candidate:
    """A published schedule on this problem: what it gives, or the reason it does not apply."""

    name: str
    timeline: Timeline | None
    metrics: Metrics | None
    fits: bool
    reason: str = ""


@dataclass(frozen=True)
class Progress:
    """A moment of the search: seconds since its start, best value and lower bound so far in ticks, and what it does."""

    seconds: float
    value: int | None
    lower_bound: int
    doing: str


@dataclass(frozen=True)
class Solution:
    """The answer to a solve; values in ticks.

    `reason` says why an infeasible problem is so. `candidates` are the published schedules, `history` the moments at
    which value or bound improved. `interrupted` tells that the user stopped the search, `notes`
    what else the user should know.
    """

    problem: Problem
    status: Status
    lower_bound: int
    certificate: Certificate | None
    timeline: Timeline | None = None
    metrics: Metrics | None = None
    candidates: tuple[Candidate, ...] = ()
    history: tuple[Progress, ...] = ()
    reason: str = ""
    wall_seconds: float = 0.0
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def value(self) -> int | None:
        return None if self.metrics is None else self.metrics.value(self.problem.objective)

    @property
    def gap(self) -> float | None:
        """(value - lower bound) / value; None without a schedule."""
        if self.value is None:
            return None
        return gap(self.value, self.lower_bound)

    @property
    def best_candidate(self) -> Candidate | None:
        """The best published schedule that fits."""
        return best_fitting(self.candidates, self.problem)


def gap(value: int, lower_bound: int) -> float:
    """(value - lower bound) / value."""
    return (value - lower_bound) / value if value else 0.0


def best_fitting(candidates: tuple[Candidate, ...], problem: Problem) -> Candidate | None:
    """The best of the candidates that apply and fit the memory."""
    fitting = [c for c in candidates if c.metrics is not None and c.fits]
    return min(fitting, key=lambda c: _value(c, problem), default=None)


def _value(candidate: Candidate, problem: Problem) -> int:
    assert candidate.metrics is not None
    return candidate.metrics.value(problem.objective)
