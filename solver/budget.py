"""A time limit shared by several solves: each question gets a part of what is left, and a Ctrl-C ends them all."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event, Thread

from pipesched.errors import Disagreement
from pipesched.feasibility import why_infeasible
from pipesched.metrics import measure
from pipesched.problem import Problem
from pipesched.solution import Solution, Status
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.best_times import best_times
from solver.limits import Limits
from solver.list_schedule import list_schedules, sequential
from solver.solve import solve

_POLL = 0.05  # seconds between looks at the clock
_GRACE = 2.0
_LIST_SHARE = 0.25  # of a question's time, at most, for list schedules


class Budget:
    """Seconds for about so many questions. Where fewer come, or some end early, the others get more.

    Under a deterministic limit the clock plays no part: every question gets the same share of CP-SAT's units.
    """

    def __init__(self, limits: Limits, questions: int, stop: Event) -> None:
        self.limits, self.stop = limits, stop
        self._questions, self._asked = max(1, questions), 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the budget was opened."""
        return time.monotonic() - self._started

    def over(self) -> bool:
        """Whether no more questions should be asked."""
        late = self.limits.deterministic is None and self.seconds >= self.limits.seconds
        return late or self.stop.is_set()

    def ask(self, problem: Problem, target: int | None = None) -> Solution:
        """A solve in its part of the time; `target` is that of `Limits`."""
        units = self.limits.deterministic
        if units is not None:
            part = replace(self.limits, deterministic=units / self._questions, target=target)
            return solve(problem, part, None, self.stop)
        left = max(0.0, self.limits.seconds - self.seconds)
        part = replace(self.limits, seconds=left / max(1, self._questions - self._asked), target=target)
        self._asked += 1
        # Published schedules take no notice of the time limit, and are worth a little more than their part.
        with _stopping_after(min(_GRACE * part.seconds, left), self.stop) as stop:
            found = solve(problem, part, None, stop)
            cut_short = stop.is_set() and not self.stop.is_set()
        if cut_short and not why_infeasible(problem):
            return _better(found, _first(problem, part, self.stop))
        return found


def _first(problem: Problem, limits: Limits, stop: Event) -> Timeline:
    """The best list schedule: a solve cut short may have spent all its time before it came to these."""
    best = best_times(problem, sequential(problem))
    value = measure(best).value(problem.objective)
    until = time.monotonic() + _LIST_SHARE * limits.seconds
    for schedule in list_schedules(problem):
        timeline = best_times(problem, schedule)
        if measure(timeline).value(problem.objective) < value:
            best, value = timeline, measure(timeline).value(problem.objective)
        if stop.is_set() or time.monotonic() > until or (limits.target is not None and value <= limits.target):
            break
    return best


def _better(solution: Solution, first: Timeline) -> Solution:
    """The solution, with this schedule in place of its own where it is better; it must be valid."""
    metrics = measure(first)
    value = metrics.value(solution.problem.objective)
    if solution.value is not None and solution.value <= value:
        return solution
    violations = validate(first)
    if violations:
        raise Disagreement(f"list scheduling gave a schedule that is not valid: {violations[0].text}")
    status = Status.OPTIMAL if value == solution.lower_bound else Status.FEASIBLE
    return replace(solution, timeline=first, metrics=metrics, status=status)


@contextmanager
def _stopping_after(seconds: float, parent: Event) -> Iterator[Event]:
    """An event that is set with the parent, or after so many seconds: hints take no notice of the time limit."""
    child, done = Event(), Event()
    at = time.monotonic() + seconds

    def watch() -> None:
        while not parent.is_set() and time.monotonic() < at:
            if done.wait(_POLL):
                return
        child.set()

    if parent.is_set():
        child.set()
    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield child
    finally:
        done.set()
        watcher.join()
