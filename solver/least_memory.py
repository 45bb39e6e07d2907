"""The least memory that still gives the best time, or one within a share of it: found by solves, proved by bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from threading import Event

from pipesched.amounts import amount
from pipesched.errors import Disagreement
from pipesched.feasibility import why_infeasible
from pipesched.metrics import Metrics, measure
from pipesched.problem import Objective
from pipesched.solution import Solution, Status
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.best_times import times_within
from solver.bounds.catalogue import certificates
from solver.budget import Budget
from solver.limits import Limits
from solver.memory_levels import MemoryLevels

# About how many solves a search by halves takes; only the shares of time depend on it.
_QUESTIONS = 8


@dataclass(frozen=True)
class LeastMemory:
    """The least memory at a value of at most `allowed` ticks; levels are those of `MemoryLevels`.

    `level` is the least found, `lower_bound` proved: no schedule within `allowed` has less. `why` is the argument.
    `best` is the best value found, `before` the level of the schedule that the search began with.
    """

    levels: MemoryLevels
    within: Fraction
    best: int
    allowed: int
    before: Fraction
    level: Fraction
    lower_bound: Fraction
    why: str
    interrupted: bool = False

    @property
    def proved(self) -> bool:
        return self.level == self.lower_bound


# Hears of the level found, the bound proved, and the level in question.
Hear = Callable[[MemoryLevels, Fraction, Fraction, Fraction], None]


def least_memory(
    solution: Solution, within: Fraction, limits: Limits, hear: Hear | None = None, stop: Event | None = None
) -> tuple[Solution, LeastMemory]:
    """The solution with its schedule replaced by that of least memory whose value is at most (1 + within) x the best.

    The best is the best value found; if the search comes upon a better one, it counts from then on. ValueError if
    the solution has no schedule, or the objective is the period.
    """
    search = _Search(solution, within, limits, hear or (lambda *_: None), stop or Event())
    search.known()
    search.by_bounds()
    search.by_solves()
    return search.solution(), search.result()


class _Search:
    """Between the level proved necessary and the level found."""

    def __init__(self, solution: Solution, within: Fraction, limits: Limits, hear: Hear, stop: Event) -> None:
        if solution.timeline is None or solution.metrics is None or solution.value is None:
            raise ValueError("without a schedule there is no memory to reduce")
        if solution.problem.objective is Objective.PERIOD:
            raise ValueError("memory is reduced for makespan or span")
        self.begun, self.problem, self.within, self.hear = solution, solution.problem, within, hear
        self.budget = Budget(limits, _QUESTIONS, stop)
        self.levels = MemoryLevels(self.problem)
        self.timeline: Timeline = solution.timeline
        self.metrics: Metrics = solution.metrics
        self.best = solution.value
        self.level = self.before = self.levels.of(self.metrics)
        self.proved = self.levels.least()
        self.why = "A device holds all its activations of a micro-batch at once, before the first is given back."

    @property
    def allowed(self) -> int:
        return int(self.best * (1 + self.within))

    def known(self) -> None:
        """The published schedules that are fast enough, and need less."""
        for candidate in self.begun.candidates:
            if candidate.timeline is not None and candidate.fits:
                timed = times_within(self.problem, candidate.timeline.schedule, self.allowed)
                if timed is not None:
                    self.take(timed)

    def take(self, timeline: Timeline) -> bool:
        """Keep a schedule if it is within the value allowed and needs less memory; it must be valid."""
        metrics = measure(timeline)
        value = metrics.value(self.problem.objective)
        if value > self.allowed or self.levels.of(metrics) >= self.level:
            return False
        violations = validate(timeline)
        if violations:
            raise Disagreement(f"the search for less memory gave a schedule that is not valid: {violations[0].text}")
        self.timeline, self.metrics, self.level = timeline, metrics, self.levels.of(metrics)
        self.best = min(self.best, value)
        return True

    def by_bounds(self) -> None:
        """Levels that certificates alone refute, by halves: they take no search."""
        low, high = self.proved, self.level
        while low < high:
            middle = self._between(low, high)
            if not self.refuted_at_once(middle):
                high = middle
                continue
            above = self.levels.above(middle)
            if above is None:
                break
            low = above

    def by_solves(self) -> None:
        """First down to what can be found, then up from what is proved: a question left open bounds neither."""
        floor = self.proved
        while floor < self.level and not self.budget.over():
            middle = self._between(floor, self.level)
            if not self.ask(middle):
                above = self.levels.above(middle)
                floor = max(self.proved, above) if above is not None else self.level
        ceiling = self.level
        while self.proved < ceiling and not self.budget.over():
            middle = self._between(self.proved, ceiling)
            before = self.proved
            self.ask(middle)
            ceiling = min(self.level, middle if self.proved == before else ceiling)

    def ask(self, level: Fraction) -> bool:
        """Whether a solve finds a schedule at this level; if it refutes the level, that is kept."""
        self.hear(self.levels, self.level, self.proved, level)
        found = self.budget.ask(self.levels.under(level), self.allowed)
        if found.timeline is not None and found.value is not None and found.value <= self.allowed:
            # The same order and times, as a schedule of the problem with the file's own capacities.
            return self.take(replace(found.timeline, problem=self.problem))
        if found.lower_bound > self.allowed and found.certificate is not None:
            self.refute(level, found.certificate.text)
        return False

    def refuted_at_once(self, level: Fraction) -> bool:
        """Whether feasibility or a certificate rules out the level."""
        problem = self.levels.under(level)
        reason = why_infeasible(problem)
        if reason is None:
            strongest = certificates(problem, problem.objective)[0]
            if strongest.value <= self.allowed:
                return False
            reason = strongest.text
        self.refute(level, reason)
        return True

    def refute(self, level: Fraction, why: str) -> None:
        above = self.levels.above(level)
        if above is None or above <= self.proved:
            return
        self.proved = above
        each = "each device's memory" if self.levels.by_share else "memory on every device"
        self.why = (
            f"With at most {self.levels.text(level)} as {each}, no schedule has a {self.problem.objective.value} of at "
            f"most {amount(self.problem, self.allowed)}: {why}"
        )

    def _between(self, low: Fraction, high: Fraction) -> Fraction:
        """A level from low up to, but not including, high: the middle one, or low."""
        return max(low, self.levels.snapped((low + high) / 2))

    def solution(self) -> Solution:
        proved = self.metrics.value(self.problem.objective) == self.begun.lower_bound
        return replace(
            self.begun,
            timeline=self.timeline,
            metrics=self.metrics,
            status=Status.OPTIMAL if proved else Status.FEASIBLE,
            interrupted=self.budget.stop.is_set(),
        )

    def result(self) -> LeastMemory:
        return LeastMemory(
            self.levels,
            self.within,
            self.best,
            self.allowed,
            self.before,
            self.level,
            self.proved,
            self.why,
            self.budget.stop.is_set(),
        )
