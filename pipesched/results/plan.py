"""The result of a plan search: best partition, placement, recomputation, order, and a certificate over all plans."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, PlanProblem
from pipesched.problem.formatting import plain
from pipesched.problem.quantities import Ticks
from pipesched.results.certificate import Certificate
from pipesched.results.free_memory import MostFree
from pipesched.results.gap import gap
from pipesched.results.plan_evidence import PlanEvidence
from pipesched.results.schedule_figures import memory_capacity
from pipesched.results.solution import Status
from pipesched.results.tabular import Tabular
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class PlanCandidate:
    """A plan: a partition on a placement (`choice`), and the order found for it; `timeline` is valid for its problem.

    `schedule` is the order's name. For the objective period the timeline is a pattern unrolled, and `period` that of
    the pattern, in the file's unit; None for other objectives.
    """

    choice: Choice
    partition: Partition
    timeline: Timeline
    schedule: str
    period: Fraction | None = None

    @property
    def value(self) -> Fraction:
        """The objective's value in the file's time unit."""
        if self.period is not None:
            return self.period
        problem = self.timeline.problem
        return measure(self.timeline).value_ticks(problem.objective) * problem.tick

    @property
    def period_ticks(self) -> Ticks | None:
        """The period in ticks of the timeline's problem, which are as fine as it needs; None for other objectives."""
        return None if self.period is None else int(self.period / self.timeline.problem.tick)

    @property
    def metrics(self) -> Metrics:
        """The metrics of the timeline, with the period."""
        return replace(measure(self.timeline), period_ticks=self.period_ticks)


@dataclass(frozen=True)
class ChoiceResult:
    """The result for one placement: its best plan, and a lower bound on all of its plans, in the file's unit.

    `lower_bound` is None if it has no plan at all; `reason` then says why. `best` is None if none was found. `evidence`
    supports the bound, None if a bound of it was found wrong.
    """

    choice: Choice
    lower_bound: Fraction | None
    best: PlanCandidate | None = None
    reason: str = ""
    evidence: PlanEvidence | None = None

    @property
    def status(self) -> Status:
        if self.best is None:
            return Status.INFEASIBLE if self.lower_bound is None else Status.UNKNOWN
        return Status.OPTIMAL if self.best.value == self.lower_bound else Status.FEASIBLE

    def document(self) -> dict[str, object]:
        """Return an entry under `choices` of `plan --json`: the keys of `Choice.document`, and the result.

        These are `value` and `lower_bound`, floats in the file's unit, `status`, `partition` (number of layers of each
        stage), and any `reason`. Value and partition are None without a plan, the bound if there can be none.
        """
        document: dict[str, object] = {
            **self.choice.document(),
            "value": None if self.best is None else float(self.best.value),
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "status": self.status.value,
            "partition": None if self.best is None else list(self.best.partition.counts),
        }
        return document | ({"reason": self.reason} if self.reason else {})


class VariantResult(NamedTuple):
    """The result for a variant of a plan problem: value of the best plan and lower bound, in the file's unit.

    `value` is None if no plan is known, `lower_bound` if a search found that there is none at all; a variant that was
    not searched has the mean work of a device as its bound. `reason` says why it was left before the search ended, or
    why it has no plan; else it is empty. `choices` are the results of its placements, which support the bound.
    """

    name: str
    value: Fraction | None
    lower_bound: Fraction | None
    reason: str
    choices: tuple[ChoiceResult, ...] = ()

    def document(self) -> dict[str, object]:
        """Return an entry under `variants` of `plan --json`: `name`, `value`, `lower_bound`, and any `reason`.

        Value and bound are floats in the file's unit, or None; the key `reason` is missing where the reason is empty.
        """
        document: dict[str, object] = {
            "name": self.name,
            "value": None if self.value is None else float(self.value),
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
        }
        return document | ({"reason": self.reason} if self.reason else {})


@dataclass(frozen=True, repr=False)
class Plan(Tabular):
    """The answer to a plan problem: the best plan of all choices. Values are in the file's time unit.

    `best` is None if no plan was found, and `reason` then says why. `certificate` is about all plans that the file
    allows, in ticks of `problem`; None if there is no plan at all. If the plan problem has several `variants` (best
    first), `problem` and `choices` are the best one's, and `asked` is the problem that has them all, else None.
    `interrupted` says that the user stopped the search. `free` is the free memory, None unless it is maximised first.
    `wall_seconds` is the time that the search took.
    """

    problem: PlanProblem
    status: Status
    certificate: Certificate | None
    choices: tuple[ChoiceResult, ...]
    best: PlanCandidate | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()
    wall_seconds: float = 0.0
    interrupted: bool = False
    variants: tuple[VariantResult, ...] = ()
    asked: PlanProblem | None = None
    free: MostFree | None = None

    def summary(self) -> str:
        """Return a line with the problem's name, status, the best plan's value, choice and layers, and the bound.

        Without a plan it says "no plan" in their place. Numbers are decimals in the file's unit.
        """
        unit, best = self.problem.time_unit, self.best
        value = "no plan" if best is None else f"{self.problem.objective.name} {plain(float(best.value))} {unit}"
        where = "" if best is None else f" ({best.choice}, layers {' '.join(map(str, best.partition.counts))})"
        bound = f"lower bound {plain(float(self.lower_bound))} {unit}"
        return f"{self.problem.name!r}: {self.status.value}, {value.rstrip()}{where}, {bound.rstrip()}"

    def records(self) -> list[dict[str, Any]]:
        """Return for each placement its entry under `choices` of `plan --json`; `reason` is always there."""
        return [{"reason": "", **choice.document()} for choice in self.choices]

    @property
    def value(self) -> Fraction | None:
        return None if self.best is None else self.best.value

    @property
    def lower_bound(self) -> Fraction:
        return Fraction(0) if self.certificate is None else self.certificate.value_ticks * self.problem.tick

    @property
    def gap(self) -> float | None:
        """The optimality gap, (value - lower bound) / value; None without a plan."""
        return None if self.value is None else gap(self.value, self.lower_bound)

    @property
    def piece_lengths(self) -> list[float]:
        """The share of the sequence of each piece of a micro-batch; empty without a plan."""
        if self.best is None:
            return []
        return list(map(float, self.best.choice.cut.shares(self.problem.model)))

    @property
    def idle(self) -> float | None:
        """The idle time, mean over the devices, as a share of the objective's value; None without a plan."""
        return None if self.metrics is None else self.metrics.idle(self.problem.objective)

    @property
    def bubble_rate(self) -> float | None:
        """The papers' bubble rate: idle time of the busiest device, as a share of the value; None without a plan."""
        return None if self.metrics is None else self.metrics.bubble(self.problem.objective)

    @property
    def metrics(self) -> Metrics | None:
        return None if self.best is None else self.best.metrics

    def document(self, settings: dict[str, object] | None = None) -> dict[str, object]:
        """Return the object of `plan --json`, in the file's units; `settings` are those of runtimes, by format.

        The keys are `name`, `objective`, `status`, `value`, `lower_bound` and `gap`; of the best plan, None without
        one, `placement`, `chunks`, `partition` (by stage the number of layers), `stage_device`, `recompute` (by stage
        the number of layers of each mode), `schedule`, `bubble` and `idle` by objective, `peak_memory` and
        `memory_capacity` by device; then `choices`, `certificate`, `settings`, `notes` and `wall_seconds`. Only where
        they say something there are `sequence_chunks`, `lengths`, `piece_lengths`, `free_memory`, `variants` and
        `reason`.
        """
        best, metrics = self.best, self.metrics
        problem = None if best is None else best.timeline.problem
        partition = None if best is None else best.partition
        document: dict[str, object] = {
            "name": self.problem.name,
            "objective": self.problem.objective.name,
            "status": self.status.value,
            "value": None if self.value is None else float(self.value),
            "lower_bound": float(self.lower_bound),
            "gap": self.gap,
            "placement": None if best is None else best.choice.placement,
            "chunks": None if best is None else best.choice.chunks,
            **({} if best is None else best.choice.document()),
            **({"piece_lengths": self.piece_lengths} if len(self.piece_lengths) > 1 else {}),
            "partition": None if partition is None else list(partition.counts),
            "stage_device": None if best is None else list(best.choice.on(self.problem.cluster.devices).stage_device),
            "recompute": None if partition is None else list(partition.recompute_counts()),
            "schedule": None if best is None else best.schedule,
            "bubble": None if metrics is None else metrics.bubbles,
            "idle": None if metrics is None else metrics.idles,
            "peak_memory": None if problem is None or metrics is None else metrics.peak_memory,
            "memory_capacity": None if problem is None else memory_capacity(problem),
            "choices": [choice.document() for choice in self.choices],
            "certificate": None if self.certificate is None else self.certificate.document(),
            "settings": settings or {},
            "notes": list(self.notes),
            "wall_seconds": round(self.wall_seconds, 3),
        }
        document |= {} if self.free is None else {"free_memory": self.free.document()}
        document |= {"variants": [one.document() for one in self.variants]} if self.variants else {}
        return document | ({"reason": self.reason} if self.reason else {})
