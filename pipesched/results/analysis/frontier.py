"""The frontier of time against memory: best value and bound from the least memory that fits to ample memory."""

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
    """One capacity: `level` in the file's unit, or as a share of capacities (`MemoryScale`); times in the file's unit.

    `timeline` has the value and fits the level; `certificate` proves the bound at this level or at a higher one, for
    less memory can only be worse. Either may come from a solve at another level, or be a published schedule.
    """

    level: Fraction
    value: Fraction | None
    lower_bound: Fraction
    timeline: Timeline | None
    certificate: Certificate

    @property
    def gap(self) -> float | None:
        """(value - lower bound) / value; None without a schedule."""
        return None if self.value is None else gap(self.value, self.lower_bound)


class Published(NamedTuple):
    """A published schedule: the level of memory that it takes, and its value in the file's unit."""

    name: str
    level: Fraction
    value: Fraction


@dataclass(frozen=True, repr=False)
class Frontier(Tabular):
    """The points of a sweep by rising level, the published schedules with no memory limit, and the file's own level.

    `bounds` are (level, time) at more levels, in the file's units as all else here: no schedule that fits the level is
    faster. `steps` are the same bounds, each to the level up to which nothing changes: the first begins at the least
    level, the last holds with any memory.
    `least` is the level that every schedule needs. `untried` is how many of the points asked for the time did not
    last, `not_needed` how many would have shown nothing new. `within` is the range of levels that was asked about.
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
    def published(self) -> tuple[Published, ...]:
        """The published schedules that apply, wherever they lie."""
        return tuple(
            Published(one.name, self.scale.of(one.metrics), _value(one.timeline))
            for one in self.candidates
            if one.metrics is not None and one.timeline is not None
        )

    def said(self) -> str:
        """The name, and from how much to how much memory it reaches."""
        levels = [self.scale.text(point.level) for point in self.points]
        reach = f"from {levels[0]} to {levels[-1]}" if levels else "no point"
        return f"{self.problem.name!r}: {self.problem.objective.value} against memory, {reach}"

    def records(self) -> list[dict[str, Any]]:
        """A row for each point."""
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
        """The object of `frontier --json`; values and memory in the file's units, or memory as shares of capacities."""
        problem, scale = self.problem, self.scale
        notes: dict[str, object] = {"notes": list(self.notes)} if self.notes else {}
        return notes | {
            "name": problem.name,
            "objective": problem.objective.value,
            "by_share": scale.by_share,
            "least_memory": float(self.least),
            "memory_in_file": None if self.own is None else float(self.own),
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
    """Idle time, mean over the devices, and the papers' bubble rate of a point's schedule, by objective."""
    metrics = None if point.timeline is None else measure(point.timeline)
    return {"idle": metrics.idles, "bubble": metrics.bubbles} if metrics else {"idle": None, "bubble": None}
