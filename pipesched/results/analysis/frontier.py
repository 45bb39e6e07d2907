"""The frontier of time against memory: best value and bound for capacities from the least that fits to ample memory."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from pipesched.problem.problem import Problem
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.candidate import Candidate
from pipesched.results.certificate import Certificate
from pipesched.results.gap import gap
from pipesched.results.tabular import Tabular
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class Point:
    """One capacity of a frontier, and its results.

    `level` is in the file's unit or a share of capacities (`MemoryScale`). Times are in the file's unit. `timeline` has
    the value and fits the level; both are None if no schedule is known. `certificate` proves the bound at this level or
    a higher one, since less memory can only be worse. Either may stem from a solve at another level, or from a
    published schedule.
    """

    level: Fraction
    value: Fraction | None
    lower_bound: Fraction
    timeline: Timeline | None
    certificate: Certificate

    @property
    def gap(self) -> float | None:
        """The optimality gap, (value - lower bound) / value; None without a schedule."""
        return None if self.value is None else gap(self.value, self.lower_bound)


class PublishedPoint(NamedTuple):
    """A published schedule: its memory level, as in `Point`, and its value in the file's unit."""

    name: str
    level: Fraction
    value: Fraction


@dataclass(frozen=True, repr=False)
class Frontier(Tabular):
    """The points of a frontier by rising memory, published schedules without memory limit, and the file's own level.

    All numbers are in the file's units, levels as `scale` says. `bounds` are (level, time) at further levels: no
    schedule that fits the level is faster. `steps` are corners (level, time) of the same bounds as a falling step
    function: where it begins, then each bound at the level where it ends. The last bound is valid for any memory, or up
    to the range asked for. `least` is the level that every schedule needs. `untried` is the number of requested points
    for which there was no time, `not_needed` the number that would have shown nothing new. `within` is the range of
    levels asked for (None: all), `own` the file's own level, None without a limit. `candidates` are the published
    schedules. `interrupted`: the user stopped the search.
    """

    scale: MemoryScale
    least: Fraction
    points: tuple[Point, ...]
    bounds: tuple[tuple[Fraction, Fraction], ...]
    steps: tuple[tuple[Fraction, Fraction], ...]
    candidates: tuple[Candidate, ...]
    own: Fraction | None
    within: tuple[Fraction, Fraction] | None = None
    untried: int = 0
    not_needed: int = 0
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def problem(self) -> Problem:
        return self.scale.problem

    @property
    def published(self) -> tuple[PublishedPoint, ...]:
        """The published schedules that apply and have a timeline, in the order of `candidates`, at whatever level."""
        return tuple(
            PublishedPoint(one.name, self.scale.of(one.metrics), _value(one.timeline))
            for one in self.candidates
            if one.metrics is not None and one.timeline is not None
        )

    @property
    def lower_bound(self) -> Fraction | None:
        """The bound of schedules with any memory, or up to the range asked for; None without a point."""
        return self.steps[-1][1] if self.steps else None

    def summary(self) -> str:
        """Return a line with the problem's name, the objective, and the levels of the first and the last point."""
        levels = [self.scale.text(point.level) for point in self.points]
        reach = f"from {levels[0]} to {levels[-1]}" if levels else "no point"
        return f"{self.problem.name!r}: {self.problem.objective.name} against memory, {reach}"

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each point: `memory`, `value`, `lower_bound`, `gap`, `idle` and `bubble`.

        Numbers are floats; memory is in the file's unit or a share, `idle` and `bubble` are by name of objective.
        Without a schedule all but the level and the bound are None.
        """
        return [self._point(point) for point in self.points]

    def _point(self, point: Point) -> dict[str, Any]:
        return {
            "memory": float(point.level),
            "value": None if point.value is None else float(point.value),
            "lower_bound": float(point.lower_bound),
            "gap": point.gap,
            **_idle(point),
        }

    def document(self) -> dict[str, object]:
        """Return the object of `frontier --json`; numbers are floats in the file's units, memory may be in shares.

        The latter is so if `by_share` is True. `points` are by rising memory, as in `records` with a `certificate`;
        `bounds` have `memory` and `lower_bound` at further levels, `schedules` the `name`, `memory` and `value` of
        published ones. `least_memory` is what every schedule needs. `memory_in_file` is None where that is unlimited,
        `lower_bound` without a point. `not_tried` and `not_needed` are numbers of points. `notes` is missing if there
        are none. Further keys are `name`, `objective` and `interrupted`.
        """
        problem, scale = self.problem, self.scale
        notes: dict[str, object] = {"notes": list(self.notes)} if self.notes else {}
        return notes | {
            "name": problem.name,
            "objective": problem.objective.name,
            "by_share": scale.by_share,
            "least_memory": float(self.least),
            "memory_in_file": None if self.own is None else float(self.own),
            "lower_bound": None if self.lower_bound is None else float(self.lower_bound),
            "points": [self._point(point) | {"certificate": point.certificate.document()} for point in self.points],
            "bounds": [{"memory": float(level), "lower_bound": float(bound)} for level, bound in self.bounds],
            "schedules": [
                {"name": one.name, "memory": float(one.level), "value": float(one.value)} for one in self.published
            ],
            "not_tried": self.untried,
            "not_needed": self.not_needed,
            "interrupted": self.interrupted,
        }


def _value(timeline: Timeline) -> Fraction:
    return measure(timeline).value_ticks(timeline.problem.objective) * timeline.problem.tick


def _idle(point: Point) -> dict[str, object]:
    """Return `idle` (mean over devices) and `bubble` (rate) of a point's schedule, by objective; None without one."""
    metrics = None if point.timeline is None else measure(point.timeline)
    return {"idle": metrics.idles, "bubble": metrics.bubbles} if metrics else {"idle": None, "bubble": None}
