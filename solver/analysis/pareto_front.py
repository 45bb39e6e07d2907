"""Pareto front of time against memory: schedules by their memory, bounds by the memory they are valid for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.problem.attainable_spans import Value
from pipesched.results.analysis.frontier import Point
from pipesched.results.certificate import Certificate
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from solver.analysis.memory_levels import MemoryLevels
from solver.bounds.saving.certificates import certificates


class _Known(NamedTuple):
    """A schedule with its memory level and its value."""

    level: Fraction
    value: Value
    timeline: Timeline


class ParetoFront:
    """Schedules and bounds by memory; best value and bound are step functions that fall with memory.

    `levels` are those of the problem without memory limits.
    """

    def __init__(self, levels: MemoryLevels) -> None:
        self.levels, self.problem = levels, levels.problem
        self._schedules: list[_Known] = []
        self._proved: dict[Fraction, Certificate] = {}
        self._analytic: dict[Fraction, Certificate] = {}
        self._analytic_seconds = 0.0

    def keep(self, timeline: Timeline) -> None:
        """Add a schedule at the memory level that it uses."""
        metrics = measure(timeline)
        self._schedules.append(_Known(self.levels.scale.of(metrics), value_of(self.problem, timeline), timeline))

    def prove(self, level: Fraction, certificate: Certificate) -> None:
        """Add a bound on all schedules that fit the level."""
        self._proved[level] = certificate

    def analytic(self, level: Fraction) -> Certificate:
        """Return the strongest analytic certificate at a level, which takes no search; cached."""
        if level not in self._analytic:
            began = time.monotonic()
            self._analytic[level] = certificates(self.levels.under(level), self.problem.objective)[0]
            self._analytic_seconds += time.monotonic() - began
        return self._analytic[level]

    def seconds_of_analytic(self, levels: int) -> float:
        """Return the seconds that certificates of `levels` more levels will take, from those known; 0 without any."""
        return levels * self._analytic_seconds / max(1, len(self._analytic))

    def top(self) -> Fraction | None:
        """Return the least level at which the fastest schedule fits; None while no schedule is known."""
        fastest = min(self._schedules, key=lambda known: (known.value, known.level), default=None)
        return None if fastest is None else fastest.level

    def bound(self, level: Fraction) -> Certificate:
        """Return the strongest certificate proved at this level or a higher one."""
        valid = [c for known in (self._proved, self._analytic) for at, c in known.items() if at >= level]
        return max(valid, key=lambda certificate: certificate.value_ticks)

    def points(self) -> list[Point]:
        """Return the points of the front: one at each solved level, and one at each step to a faster schedule."""
        top = self.top()
        if top is None:
            return []
        steps = {known.level for known in self._schedules if self._is_step(known)}
        return [self._point(level) for level in sorted({level for level in self._proved if level < top} | steps)]

    def bounds(self) -> list[tuple[Fraction, Fraction]]:
        """Return (level, bound in the file's unit) at every level with a certificate, up to the top."""
        top = self.top()
        if top is None:
            return []
        least = self.levels.least()
        at = sorted(level for level in {*self._analytic, *self._proved} if least <= level < top)
        return [(level, self.bound(level).value_ticks * self.problem.tick) for level in [*at, top]]

    def steps(self, bounds: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
        """Return the bounds as corners of a step function, constant up to the next level a schedule can have."""
        ends = [(self.levels.above(level) or level, bound) for level, bound in bounds[:-1]]
        return [*bounds[:1], *ends, *bounds[-1:]]

    def _is_step(self, known: _Known) -> bool:
        """True if the schedule is non-dominated in time and memory."""
        return not any(
            other.level <= known.level and other.value <= known.value and other[:2] != known[:2]
            for other in self._schedules
        )

    def _point(self, level: Fraction) -> Point:
        fitting = [known for known in self._schedules if known.level <= level]
        best = min(fitting, key=lambda known: known.value, default=None)
        value, timeline = (None, None) if best is None else (best.value * self.problem.tick, best.timeline)
        bound = self.bound(level)
        return Point(level, value, bound.value_ticks * self.problem.tick, timeline, bound)
