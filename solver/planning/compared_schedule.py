"""Comparison of published schedules on one model: the result for each schedule, and the table of all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipesched.errors import BadInput
from pipesched.layers.plan_problem import PlanProblem
from pipesched.picture import Picture
from pipesched.problem.formatting import plain
from pipesched.results.plan import Plan, PlanCandidate
from pipesched.results.solution import Status
from pipesched.results.tabular import Tabular
from pipesched.schedule.metrics import measure

_NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class ComparedSchedule:
    """Result for one published schedule: the search over plans that use it, or the reason why it does not apply.

    `plan`: the result of the search; None where the schedule does not apply to the problem (`applies` is False), was
    not tried, or failed. `reason` says why, or why the search found no plan; else it is empty. `unfit`: where no plan
    fits the memory, the plan with the smallest excess among those tried.
    """

    name: str
    plan: Plan | None = None
    unfit: PlanCandidate | None = None
    reason: str = ""
    applies: bool = True

    @property
    def best(self) -> PlanCandidate | None:
        """Best plan that fits the memory, else `unfit`; None if neither exists."""
        return self.unfit if self.plan is None or self.plan.best is None else self.plan.best

    @property
    def fits(self) -> bool:
        return self.plan is not None and self.plan.best is not None

    @property
    def status(self) -> Status | None:
        """The status of the search, unknown where there was none; None where the schedule does not apply."""
        if self.plan is not None:
            return self.plan.status
        return Status.UNKNOWN if self.applies else None

    def record(self) -> dict[str, Any]:
        """Return this schedule's row of `compare --json` for a plan file, as a dictionary in the file's units.

        Numbers are floats. `schedule` is its name, `status` a text, `fits` True if a plan fits the memory, `reason` why
        it was not tried or does not apply, else None. Of the plan `best`, None without it, are `value`, `peak_memory`
        (by device), `partition` and `recompute` (layers by stage, the latter by mode), `placement`, `chunks`, `order`,
        `idle_ratio` and, by objective, `idle` and `bubble`. `lower_bound` and `gap` are None without a search.
        """
        best, plan = self.best, self.plan
        found: dict[str, Any] = {
            "schedule": self.name,
            "value": None,
            "lower_bound": None if plan is None else float(plan.lower_bound),
            "gap": None if plan is None else plan.gap,
            "idle_ratio": None,
            "idle": None,
            "bubble": None,
            "peak_memory": None,
            "fits": self.fits,
            "partition": None,
            "recompute": None,
            "placement": None,
            "chunks": None,
            "order": None,
            "status": _NOT_APPLICABLE if self.status is None else self.status.value,
            "reason": self.reason or None,
        }
        if best is None:
            return found
        metrics = measure(best.timeline)
        return found | {
            "value": float(best.value),
            "idle_ratio": metrics.idle_ratio,
            "idle": metrics.idles,
            "bubble": metrics.bubbles,
            "peak_memory": metrics.peak_memory,
            "partition": list(best.partition.counts),
            "recompute": list(best.partition.recompute_counts()),
            **best.choice.document(),
            "order": best.schedule,
        }


class ModelComparison(tuple[ComparedSchedule, ...], Tabular):
    """The results for the compared schedules on the model `problem`, best first, then those without a plan that fits.

    It is a tuple that shows itself as a table.
    """

    problem: PlanProblem

    def __new__(cls, rows: Iterable[ComparedSchedule], problem: PlanProblem) -> ModelComparison:
        made = super().__new__(cls, rows)
        made.problem = problem
        return made

    def __getnewargs__(self) -> tuple[tuple[ComparedSchedule, ...], PlanProblem]:
        return tuple(self), self.problem

    __repr__, _repr_html_ = Tabular.__repr__, Tabular._repr_html_

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary for each schedule, in the order of the table, with the keys of `compare --json`.

        They are the same in every row: `schedule` is the name, `status` a text, `fits` True if a plan fits the memory,
        `value`, `lower_bound`, `gap`, `peak_memory` and others describe the best plan, in the file's units. What
        belongs to a plan is None where the schedule has none.
        """
        return [row.record() for row in self]

    def summary(self) -> str:
        best = next((row for row in self if row.fits), None)
        if best is None or best.plan is None or best.plan.value is None:
            return f"{self.problem.name!r}: no plan fits, of {len(self)} schedules"
        value = f"{plain(float(best.plan.value))} {self.problem.time_unit}".rstrip()
        return f"{self.problem.name!r}: best of {len(self)} schedules {best.name}, {value}"

    def plot(self) -> Picture:
        """Return the picture of the best plan's timeline; BadInput if no plan fits the memory."""
        best = next((row.plan for row in self if row.fits), None)
        if best is None:
            raise BadInput("plot: found no plan that fits; allowed: a comparison with one")
        return best.plot()
