"""A published schedule on a problem: its timeline and metrics, or the reason why it does not apply.

And their ranking.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.gap import gap
from pipesched.schedule.metrics import Metrics
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class Candidate:
    """A published schedule on a problem: its timeline and metrics, or the reason why it does not apply.

    `timeline` and `metrics` are None if it does not apply. `fits` is True if it keeps the memory limits. `defect` is
    True if the reason is a defect of this tool; `tried` is False if the time limit left no time for it. With
    `extended_from`, the figures were computed for that many micro-batches and extended, since every further one takes
    equally long; `timeline` is then None.
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
        """The objective's value in the file's time unit; None if the schedule does not apply."""
        if self.metrics is None:
            return None
        return self.metrics.problem.in_units(self.metrics.value_ticks(self.metrics.problem.objective))

    @property
    def makespan(self) -> float | None:
        """The makespan in the file's time unit; None if the schedule does not apply."""
        return None if self.metrics is None else self.metrics.makespan

    @property
    def span(self) -> float | None:
        """The span in the file's time unit; None if the schedule does not apply."""
        return None if self.metrics is None else self.metrics.span

    def record(self, problem: Problem, lower_bound: Ticks) -> dict[str, object]:
        """Return a row of `compare --json`, in the file's units; `lower_bound` is in ticks of `problem`.

        The keys are `schedule` (its name), `value`, `makespan`, `span`, `bubble` and `idle` by name of objective,
        `peak_memory` by device, `fits`, `gap`, `status` ("ok" or "does not apply") and `reason`. Numbers are floats,
        None if the schedule does not apply; `gap` is None, too, if it exceeds the memory. `extended_from` is there only
        if the figures were computed for so many micro-batches.
        """
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
    """Return the candidates, best first.

    Those that fit come first, by value, then those that do not fit, also by value, then those that do not apply. Equal
    ones keep their order.
    """

    def rank(one: Candidate) -> tuple[bool, bool, int]:
        return one.metrics is None, not one.fits, 0 if one.metrics is None else one.metrics.value_ticks(objective)

    return sorted(candidates, key=rank)


def best_fitting(candidates: Iterable[Candidate], problem: Problem) -> Candidate | None:
    """Return the candidate with the least value of the problem's objective among those that apply and fit the memory.

    None if there is none.
    """
    first = next(iter(ranked(candidates, problem.objective)), None)
    return first if first is not None and first.metrics is not None and first.fits else None
