"""Least memory at the best value, or within a tolerance of it: found by solves, proved by bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from threading import Event

from pipesched.deadline import within as in_time
from pipesched.errors import defect_note
from pipesched.problem.attainable_spans import Value, largest_denominator, most_up_to
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.formatting import amount
from pipesched.problem.rescale import in_ticks_of
from pipesched.results.analysis.least_memory import LeastMemory
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.solution import Solution, Status
from pipesched.schedule.metrics import Metrics, measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.analysis.memory_levels import MemoryLevels
from solver.analysis.time_budget import Budget
from solver.bounds.saving.certificates import certificates
from solver.construction.timing import best_times, times_within
from solver.engine.incumbent.common_ticks import in_common_ticks
from solver.limits import Limits
from solver.parameters import tunable, tuned


@dataclass(frozen=True)
@tunable
class MinMemoryParams:
    """Division of the time in the search for the least memory at a value."""

    questions: int = tuned(6, "solves among which the time is shared", 1, 100)


_PARAMS = MinMemoryParams()


# Called with the scale of levels, the level found, the bound proved, and the level in question.
OnProgress = Callable[[MemoryScale, Fraction, Fraction, Fraction], None]


def least_memory(
    solution: Solution,
    within: Fraction,
    limits: Limits,
    on_progress: OnProgress | None = None,
    stop: Event | None = None,
) -> tuple[Solution, LeastMemory]:
    """Return the solution with a schedule of least memory in place of its own, and the least memory with its proof.

    The value of the schedule is at most (1 + `within`) times the best value found, including values that this search
    finds; `within` is a share, 0 for the best value itself. `limits` are for the whole search, which ends with the best
    so far once `stop` is set. The solution keeps its bound, and is optimal if its new value is that bound.
    `on_progress(scale, level, proved, next)` is called before each solve, with the memory level found, the one proved
    necessary and the one that is tried next, all in the units of `scale`. Raises `ValueError` if the solution has no
    schedule, or the objective is the period.
    """
    search = _Search(solution, within, limits, on_progress or (lambda *_: None), stop or Event())
    search.known()
    search.by_bounds()
    search.by_solves()
    search.faster()
    return search.solution(), search.result()


class _Search:
    """Bisection between the memory level that is proved necessary (`proved`) and that of a schedule (`level`).

    Levels are in the units of `scale`. `begun` is the solution that the search was given. `timeline`, `metrics` and
    `value` are of that schedule, `before` is the level with which the search began. `best` is the least value found,
    `allowed` the most that is allowed, both in ticks of `problem`; `why` is the argument for `proved`.
    """

    def __init__(
        self, solution: Solution, within: Fraction, limits: Limits, on_progress: OnProgress, stop: Event
    ) -> None:
        if solution.timeline is None or solution.metrics is None or solution.value_ticks is None:
            raise ValueError("without a schedule there is no memory to reduce")
        if solution.problem.objective.repeats:
            raise ValueError("memory is reduced for makespan or span")
        self.begun, self.problem, self.within, self.on_progress = solution, solution.problem, within, on_progress
        self.budget = Budget(limits, _PARAMS.questions, stop)
        self.levels = MemoryLevels(self.problem)
        self.scale = self.levels.scale
        self.timeline: Timeline = solution.timeline
        self.metrics: Metrics = solution.metrics
        self.best: Value = solution.value_ticks
        self.value: Value = solution.value_ticks
        self.parts = largest_denominator(self.problem)
        self.notes: list[str] = []
        self.level = self.before = self.scale.of(self.metrics)
        self.proved = self.levels.least()
        self.why = "A device holds all its activations of a micro-batch at once, before the first is given back."

    @property
    def allowed(self) -> Value:
        return most_up_to(self.best * (1 + self.within), self.parts)

    def known(self) -> None:
        """Take the published schedules within the allowed value that need less memory, or as little and are faster."""
        for candidate in self.begun.candidates:
            if candidate.timeline is not None and candidate.fits:
                order = candidate.timeline.schedule
                for timed in (best_times(self.problem, order), times_within(self.problem, order, self.allowed)):
                    if timed is not None:
                        self.take(timed)

    def take(self, timeline: Timeline) -> bool:
        """Keep a schedule if within the allowed value and better in memory level, then value; True if the level fell.

        Of two of equal level and value the one with the smaller sum of peaks is kept: so the kept schedule is not
        dominated by another one that was met. An invalid one is dropped with a note.
        """
        metrics = measure(timeline)
        value, level = value_of(self.problem, timeline), self.scale.of(metrics)
        if value > self.allowed or self._rank(metrics, value) >= self._rank(self.metrics, self.value):
            return False
        violations = validate(timeline)
        if violations:
            text = "the search for less memory gave a schedule that is not valid, which was dropped: "
            self.notes.append(defect_note(text + violations[0].text))
            return False
        fell = level < self.level
        self.timeline, self.metrics, self.level, self.value = timeline, metrics, level, value
        self.best = min(self.best, value)
        return fell

    def _rank(self, metrics: Metrics, value: Value) -> tuple[Fraction, Value, int]:
        """Return the sort key: the memory level, then the value, then the sum of all devices' peaks."""
        return self.scale.of(metrics), value, sum(metrics.peak_quanta)

    def _own(self, timeline: Timeline) -> Timeline:
        """Return a schedule, found with other capacities, as one of the problem with the file's own capacities."""
        return replace(timeline, problem=replace(timeline.problem, pools=self.problem.pools))

    def by_bounds(self) -> None:
        """Raise the proved level by bisection over levels that infeasibility or analytic certificates refute.

        It ends when no level is left to try or the time is over. No search is run.
        """
        low, high = self.proved, self.level
        while low < high:
            middle = self._between(low, high)
            refuted = in_time(self.budget.deadline(), partial(self.refuted_at_once, middle))
            if refuted is None:
                break
            if not refuted:
                high = middle
                continue
            above = self.levels.above(middle)
            if above is None:
                break
            low = above

    def by_solves(self) -> None:
        """Bisect by solves: first to lower `level`, that of the best schedule, then to raise `proved` towards it.

        `proved` is the lowest level not refuted; both phases end where the two meet, or with the time. A level that a
        solve leaves undecided changes neither.
        """
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
        """Solve at the capacities of this level; True if that gives a schedule of less memory.

        If the level is refuted instead, the proved level rises above it.
        """
        self.on_progress(self.scale, self.level, self.proved, level)
        found = self.budget.ask(self.levels.under(level), self.allowed)
        self.notes += [note for note in found.notes if note not in self.notes]
        if found.timeline is not None and value_of(self.problem, found.timeline) <= self.allowed:
            return self.take(self._own(found.timeline))
        bound = in_ticks_of(self.problem, found.lower_bound_ticks, found.problem)
        if bound > self.allowed and found.certificate is not None:
            self.refute(level, found.certificate.text)
        return False

    def faster(self) -> None:
        """Search the best value at the least level found, if slower schedules than the best were allowed."""
        if self.within and not self.budget.over() and self.value > self.begun.lower_bound_ticks:
            found = self.budget.ask(self.levels.under(self.level))
            if found.timeline is not None:
                self.take(self._own(found.timeline))

    def refuted_at_once(self, level: Fraction) -> bool:
        """True if infeasibility or an analytic certificate rules a level out; the proved level then rises above it."""
        problem = self.levels.under(level)
        reason = why_infeasible(problem)
        if reason is None:
            strongest = certificates(problem, problem.objective)[0]
            if strongest.value_ticks <= self.allowed:
                return False
            reason = strongest.text
        self.refute(level, reason)
        return True

    def refute(self, level: Fraction, why: str) -> None:
        above = self.levels.above(level)
        if above is None or above <= self.proved:
            return
        self.proved = above
        each = "each device's memory" if self.scale.by_share else "memory on every device"
        self.why = (
            f"With at most {self.scale.text(level)} as {each}, no schedule has a {self.problem.objective.name} of at "
            f"most {amount(self.problem, self.allowed)}: {why}"
        )

    def _between(self, low: Fraction, high: Fraction) -> Fraction:
        """Return a level from `low` up to, not including, `high`: the highest possible up to their mean, or `low`.

        A level is an amount of memory in the file's unit, or a share of each device's capacity.
        """
        return max(low, self.levels.snapped((low + high) / 2))

    def solution(self) -> Solution:
        assert self.begun.certificate is not None
        proved = self.value == self.begun.lower_bound_ticks
        found = replace(
            self.begun,
            status=Status.OPTIMAL if proved else Status.FEASIBLE,
            interrupted=self.budget.stop.is_set(),
            notes=(*self.begun.notes, *self.notes),
        )
        return in_common_ticks(found, self.timeline, self.begun.certificate)

    def result(self) -> LeastMemory:
        return LeastMemory(
            self.scale,
            self.within,
            self.best,
            self.allowed,
            self.before,
            self.level,
            self.proved,
            self.why,
            self.budget.stop.is_set(),
        )
