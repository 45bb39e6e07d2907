"""Pareto front of time against memory: schedules by the memory used, bounds by the memory for which they are valid."""

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
    """A schedule with its memory level (`MemoryLevels`) and its value in ticks of the problem."""

    level: Fraction
    value: Value
    timeline: Timeline


class ParetoFront:
    """Schedules and bounds found, by memory level; the best value and the bound fall in steps as memory grows.

    `levels` are those of the problem without memory limits. Bounds and values of certificates are in ticks of that
    problem.
    """

    def __init__(self, levels: MemoryLevels) -> None:
        self.levels, self.problem = levels, levels.problem
        self._schedules: list[_Known] = []
        self._proved: dict[Fraction, Certificate] = {}
        self._analytic: dict[Fraction, Certificate] = {}
        self._analytic_seconds = 0.0

    def keep(self, timeline: Timeline) -> None:
        """Add a schedule, at the memory level that it uses."""
        metrics = measure(timeline)
        self._schedules.append(_Known(self.levels.scale.of(metrics), value_of(self.problem, timeline), timeline))

    def prove(self, level: Fraction, certificate: Certificate) -> None:
        """Record a certificate that holds for all schedules whose memory is at most this level.

        It replaces one recorded for the same level.
        """
        self._proved[level] = certificate

    def analytic(self, level: Fraction) -> Certificate:
        """Return the strongest analytic certificate for the capacities of a level.

        Results are cached, and no search is run.
        """
        if level not in self._analytic:
            began = time.monotonic()
            self._analytic[level] = certificates(self.levels.under(level), self.problem.objective)[0]
            self._analytic_seconds += time.monotonic() - began
        return self._analytic[level]

    def seconds_of_analytic(self, levels: int) -> float:
        """Return the seconds that analytic certificates of `levels` more levels would take, by the mean so far.

        0 while there are none.
        """
        return levels * self._analytic_seconds / max(1, len(self._analytic))

    def top(self) -> Fraction | None:
        """Return the memory level of the fastest schedule, the lowest of several; None while no schedule is known.

        A level is an amount of memory in the file's unit, or a share of each device's capacity.
        """
        fastest = min(self._schedules, key=lambda known: (known.value, known.level), default=None)
        return None if fastest is None else fastest.level

    def bound(self, level: Fraction) -> Certificate:
        """Return the strongest certificate known for this level or a higher one, which is valid here as well.

        There must be one, recorded by `prove` or computed by `analytic`; without one a `ValueError` is raised.
        """
        valid = [c for known in (self._proved, self._analytic) for at, c in known.items() if at >= level]
        return max(valid, key=lambda certificate: certificate.value_ticks)

    def points(self) -> list[Point]:
        """Return the front's points, lowest level first: at proved levels below the fastest one's, and at schedules.

        The schedules are those that no other dominates. A point at a level that no schedule found fits has the value
        None. For each there must be a certificate at its level or a higher one. Empty without a schedule.
        """
        top = self.top()
        if top is None:
            return []
        steps = {known.level for known in self._schedules if self._is_step(known)}
        return [self._point(level) for level in sorted({level for level in self._proved if level < top} | steps)]

    def bounds(self) -> list[tuple[Fraction, Fraction]]:
        """Return (level, bound in the file's unit), ascending, of levels with a certificate up to the fastest one.

        They are those from the least level of any schedule on; the last is the fastest schedule's, for which there must
        be a certificate too. Empty without a schedule.
        """
        top = self.top()
        if top is None:
            return []
        least = self.levels.least()
        at = sorted(level for level in {*self._analytic, *self._proved} if least <= level < top)
        return [(level, self.bound(level).value_ticks * self.problem.tick) for level in [*at, top]]

    def steps(self, bounds: Sequence[tuple[Fraction, Fraction]], greatest: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Return (level, bound) pairs as corners of a step function, by ascending level; empty if `bounds` is.

        `bounds` are as `bounds()` returns them. The first pair is the first of `bounds`; each further one has the level
        up to which its bound is valid, from the level of the pair before it on. The last is valid up to the `greatest`
        level, for which there must be a certificate: schedules that use more memory than the fastest one found may be
        faster, where that is not proved to be the best.
        """
        if not bounds:
            return []
        ends = [(self.levels.above(level) or level, bound) for level, bound in bounds[:-1]]
        top, least = bounds[-1]
        everywhere = self.bound(greatest).value_ticks * self.problem.tick
        if everywhere == least:
            return [bounds[0], *ends, (top, least)]
        end = self.levels.above(top) or top
        return [bounds[0], *ends, (end, least), (end, everywhere)]

    def _is_step(self, known: _Known) -> bool:
        """True if no other schedule found is at least as good in time and memory and better in one of them."""
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
