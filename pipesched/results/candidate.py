"""A published schedule on a problem: its timeline, or why it does not apply; the best of several by the objective."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipesched.problem.problem import Objective, Problem
from pipesched.results.gap import gap
from pipesched.schedule.metrics import Metrics
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class Candidate:
    """A published schedule on this problem: what it gives, or the reason it does not apply.

    `defect` tells that the reason is a defect of this tool; `tried` is off where the time limit left none for it.
    `extended_from`: its figures are those of so many micro-batches, after which every further one takes equally long;
    the timeline of all of them is not made.
    """

    name: str
    timeline: Timeline | None
    metrics: Metrics | None
    fits: bool
    reason: str = ""
    defect: bool = False
    tried: bool = True
    extended_from: int | None = None

    @property
    def value(self) -> float | None:
        """The objective's value in the file's time unit; None where it does not apply."""
        if self.metrics is None:
            return None
        return self.metrics.problem.in_units(self.metrics.value_ticks(self.metrics.problem.objective))

    @property
    def makespan(self) -> float | None:
        """In the file's time unit; None where it does not apply."""
        return None if self.metrics is None else self.metrics.makespan

    @property
    def span(self) -> float | None:
        """In the file's time unit; None where it does not apply."""
        return None if self.metrics is None else self.metrics.span

    def record(self, problem: Problem, lower_bound: int) -> dict[str, object]:
        """A row of `compare --json`, in the file's units; the problem is its own, with the bound in its ticks."""
        metrics = self.metrics
        if metrics is None:
            nothing = dict.fromkeys(("value", "makespan", "span", "bubble", "idle", "peak_memory", "gap"))
            status = {"fits": False, "status": "does not apply", "reason": self.reason}
            return {"schedule": self.name, **nothing, **status}
        value = metrics.value_ticks(problem.objective)
        extended = {} if self.extended_from is None else {"extended_from": self.extended_from}
        return {
            "schedule": self.name,
            "value": problem.in_units(value),
            "makespan": metrics.makespan,
            "span": metrics.span,
            "bubble": metrics.bubbles,
            "idle": metrics.idles,
            "peak_memory": metrics.peak_memory,
            "fits": self.fits,
            # A schedule that breaks the memory cap may lie below the bound of those that keep it.
            "gap": gap(value, lower_bound) if self.fits else None,
            "status": "ok",
            "reason": self.reason,
            **extended,
        }


def ranked(candidates: Iterable[Candidate], objective: Objective) -> list[Candidate]:
    """Best first: those that fit by value, then those that do not fit, then those that do not apply."""

    def rank(one: Candidate) -> tuple[bool, bool, int]:
        return one.metrics is None, not one.fits, 0 if one.metrics is None else one.metrics.value_ticks(objective)

    return sorted(candidates, key=rank)


def best_fitting(candidates: Iterable[Candidate], problem: Problem) -> Candidate | None:
    """The best of the candidates that apply and fit the memory."""
    first = next(iter(ranked(candidates, problem.objective)), None)
    return first if first is not None and first.metrics is not None and first.fits else None
