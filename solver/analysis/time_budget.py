"""A time budget shared by several solves: each gets a share of the time left, and Ctrl-C ends them all."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Event

from pipesched.event_when import event_when
from pipesched.problem.attainable_spans import Value
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.analysis.list_fallback import with_list_schedule
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.limits import Limits
from solver.solve import solve

_POLL = 0.05  # seconds between looks at the clock
_GRACE = 2.0


# A question is about a value and its bound, not about which of the schedules of that value is best otherwise.
_VALUE_ALONE = replace(ENGINE, finish=Search.solution)


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

    def ask(self, problem: Problem, target: Value | None = None) -> Solution:
        """A solve in its part of the time; `target` is that of `Limits`."""
        units = self.limits.deterministic
        if units is not None:
            part = replace(self.limits, deterministic=units / self._questions, target=target)
            return solve(problem, part, None, self.stop, engine=_VALUE_ALONE)
        left = max(0.0, self.limits.seconds - self.seconds)
        part = replace(self.limits, seconds=left / max(1, self._questions - self._asked), target=target)
        self._asked += 1
        # Published schedules take no notice of the time limit, and are worth a little more than their part.
        with _stopping_after(min(_GRACE * part.seconds, left), self.stop) as stop:
            found = solve(problem, part, None, stop, engine=_VALUE_ALONE)
            cut_short = stop.is_set() and not self.stop.is_set()
        if cut_short and not why_infeasible(problem):
            return with_list_schedule(found, part, self.stop)
        return found


def _stopping_after(seconds: float, parent: Event) -> AbstractContextManager[Event]:
    """An event that is set with the parent, or after so many seconds: hints take no notice of the time limit."""
    at = time.monotonic() + seconds
    return event_when(lambda: parent.is_set() or time.monotonic() >= at, _POLL)
