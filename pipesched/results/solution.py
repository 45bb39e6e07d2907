"""The result of a solve: the best schedule found, the lower bound proved, and the history of both."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.candidate import Candidate, best_fitting, ranked
from pipesched.results.certificate import Certificate
from pipesched.results.free_memory import MostFree
from pipesched.results.gap import gap
from pipesched.results.schedule_figures import decisions_document, memory_capacity, static_memory, streams_document
from pipesched.results.solution_html import solution_html
from pipesched.results.tabular import Tabular
from pipesched.schedule.metrics import Metrics
from pipesched.schedule.timeline import Timeline


class Status(StrEnum):
    """The proof status of an answer.

    `OPTIMAL`: the value is the lower bound. `FEASIBLE`: there is a schedule, and a better one may exist. `INFEASIBLE`:
    it is proved that there is none. `UNKNOWN`: a limit passed with no schedule found.
    """

    OPTIMAL = "optimal"  # value = lower bound
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"  # a limit passed with no schedule found


@dataclass(frozen=True)
class Progress:
    """A moment of a search: seconds since its start, best value and lower bound in the file's unit, and phase.

    `value` is None before the first schedule. `timeline` is the best schedule so far, in ticks of its own problem. It
    is None before the first one, for the objective period, and in the history of a solution, which would keep every
    schedule of the search in memory.
    """

    seconds: float
    value: Fraction | None
    lower_bound: Fraction
    phase: str
    timeline: Timeline | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, repr=False)
class Solution(Tabular):
    """The answer to a solve. Values are in the file's time unit, fields ending in `_ticks` in ticks of `problem`.

    `problem` has finer ticks than the one given if value or bound are a fraction of its tick; `in_ticks_of` converts.
    No schedule has a value less than `lower_bound_ticks`, as `certificate` proves, None where there is no proof, as of
    an infeasible problem. `timeline` is the schedule found and `metrics` has its figures, both None without one; for a
    period it is the pattern unrolled. `reason` says why an infeasible problem is so. `candidates` are the published
    schedules in no order of value (`ranked` sorts them), `history` the moments at which value or bound improved, in
    order. `interrupted`: the user stopped the search; `notes` has further remarks. `parts` are the subsolvers that ran,
    with the seconds that each took; some ran in parallel.

    `free` is the free memory, if it is maximised first. The capacities of `problem` are then without that amount, and
    value and bound are those of the schedules that leave as much. `wall_seconds` is the time that the solve took.
    """

    problem: Problem
    status: Status
    lower_bound_ticks: Ticks
    certificate: Certificate | None
    timeline: Timeline | None = None
    metrics: Metrics | None = None
    candidates: tuple[Candidate, ...] = ()
    history: tuple[Progress, ...] = ()
    reason: str = ""
    wall_seconds: float = 0.0
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()
    free: MostFree | None = None

    def summary(self) -> str:
        """Return the name of the problem, and the schedule's verdict, as a line."""
        return f"{self.problem.name!r}: {self._verdict()}"

    def records(self) -> list[dict[str, Any]]:
        """Return a row of `compare --json` for each published schedule that applies, best first, then that found."""
        found = [one for one in ranked(self.candidates, self.problem.objective) if one.metrics is not None]
        ours = [Candidate("pipesched", self.timeline, self.metrics, True)] if self.metrics is not None else []
        return [one.record(self.problem, self.lower_bound_ticks) for one in (*found, *ours)]

    def _verdict(self) -> str:
        value = (
            "no schedule" if self.value is None else f"{self.problem.objective.name} {self._amount(self.value_ticks)}"
        )
        return f"{self.status.value}, {value}, lower bound {self._amount(self.lower_bound_ticks)}"

    def _amount(self, ticks: Ticks | None) -> str:
        return "none" if ticks is None else amount(self.problem, ticks)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the schedule found, published ones that apply, and the certificate."""
        rows = [(one.name, one.metrics, one.fits) for one in ranked(self.candidates, self.problem.objective)]
        ours = ("pipesched", self.metrics, True)
        return solution_html(
            f"{self.problem.name}: {self._verdict()}", self.problem, [*rows, ours], self.timeline, self.certificate
        )

    def document(self) -> dict[str, object]:
        """Return the object of `solve --json`; numbers are floats in the file's units, None for what there is not.

        The keys are `name`, `objective`, `status`, `value`, `lower_bound`, `gap`, `makespan`, `span`, `period`,
        `bubble` and `idle` by objective, `idle_ratio`, `peak_memory` and `memory_capacity` by device, `streams`,
        `certificate`, `best_heuristic` (`name` and `value` of the best published schedule that fits), `notes` and
        `wall_seconds`. There are `decisions` only with a schedule, and `static_memory`, `free_memory` and `reason` only
        where they say something.
        """
        problem, metrics, best = self.problem, self.metrics, self.best_candidate
        document: dict[str, object] = {
            "name": problem.name,
            "objective": problem.objective.name,
            "status": self.status.value,
            "value": self.value,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "makespan": self.makespan,
            "span": self.span,
            "period": metrics.period if metrics else None,
            "bubble": metrics.bubbles if metrics else None,
            "idle": metrics.idles if metrics else None,
            "idle_ratio": metrics.idle_ratio if metrics else None,
            "peak_memory": metrics.peak_memory if metrics else None,
            "memory_capacity": memory_capacity(problem),
            "streams": streams_document(self.timeline) if self.timeline else None,
            **(decisions_document(self.timeline.problem, self.timeline.schedule) if self.timeline else {}),
            **static_memory(problem),
            "certificate": self.certificate.document() if self.certificate else None,
            "best_heuristic": None if best is None else {"name": best.name, "value": best.value},
            "notes": list(self.notes),
            "wall_seconds": round(self.wall_seconds, 3),
        }
        document |= {} if self.free is None else {"free_memory": self.free.document()}
        return document | ({"reason": self.reason} if self.reason else {})

    @property
    def value(self) -> float | None:
        """The objective's value in the file's time unit; None without a schedule."""
        return None if self.value_ticks is None else self.problem.in_units(self.value_ticks)

    @property
    def lower_bound(self) -> float:
        """The lower bound in the file's time unit: no schedule has a smaller value."""
        return self.problem.in_units(self.lower_bound_ticks)

    @property
    def makespan(self) -> float | None:
        """The makespan in the file's time unit; None without a schedule."""
        return None if self.metrics is None else self.metrics.makespan

    @property
    def span(self) -> float | None:
        """The span in the file's time unit; None without a schedule."""
        return None if self.metrics is None else self.metrics.span

    @property
    def idle(self) -> float | None:
        """The idle time, mean over the devices, as a share of the objective's value; None without a schedule."""
        return None if self.metrics is None else self.metrics.idle(self.problem.objective)

    @property
    def bubble_rate(self) -> float | None:
        """The papers' bubble rate: idle time of the busiest device, as a share of the value.

        None without a schedule.
        """
        return None if self.metrics is None else self.metrics.bubble(self.problem.objective)

    @property
    def value_ticks(self) -> Ticks | None:
        return None if self.metrics is None else self.metrics.value_ticks(self.problem.objective)

    @property
    def gap(self) -> float | None:
        """The optimality gap, (value - lower bound) / value; None without a schedule."""
        return None if self.value_ticks is None else gap(self.value_ticks, self.lower_bound_ticks)

    @property
    def best_candidate(self) -> Candidate | None:
        """The best published schedule that fits the memory; None if there is none."""
        return best_fitting(self.candidates, self.problem)
