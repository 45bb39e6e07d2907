"""Time budget shared by several solves: each gets a share of the time left, and Ctrl-C ends all of them."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from math import inf
from threading import Event

from pipesched.deadline import Deadline, within
from pipesched.errors import defect_note
from pipesched.event_when import event_when
from pipesched.problem.attainable_spans import Value
from pipesched.problem.chains.microbatch_chains import unequal_microbatches
from pipesched.problem.feasibility import why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution, Status
from pipesched.schedule.chain_timelines import timeline_back
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.engine.engine import ENGINE
from solver.engine.incumbent.common_ticks import in_common_ticks
from solver.engine.search import Search
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.solve import solve
from solver.tasks.dispatch import listed


@dataclass(frozen=True)
@tunable
class TimeBudgetParams:
    """Shares of the time of several solves that share one limit."""

    longest: float = tuned(3.0, "times its part of the time, after which a solve is ended", 1, 10)
    lists_share: float = tuned(0.2, "of the time limit, for list schedules where a solve was ended", 0, 1)
    first_seconds: float = tuned(1.0, "s for a schedule where a solve has none, even beyond the time limit", 0, 10)


_PARAMS = TimeBudgetParams()


_POLL = 0.05  # seconds between looks at the clock


# Only a value and its bound are asked for, so the search for a better schedule of the same value is left out.
_VALUE_ALONE = replace(ENGINE, finish=Search.solution)


class Budget:
    """Time for about `questions` solves; if some end early, the others get more. Setting `stop` ends all.

    `reserved` seconds at the end, 0 until the caller sets them, are for work after the solves. `limits` and `stop` are
    those given. Under a deterministic limit the clock does not count: every solve gets `1 / questions` of the units of
    work, however many there are.
    """

    def __init__(self, limits: Limits, questions: int, stop: Event) -> None:
        self.limits, self.stop = limits, stop
        self._questions, self._asked = max(1, questions), 0
        self._started, self.reserved = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the budget was created."""
        return time.monotonic() - self._started

    def over(self) -> bool:
        """True if no more solves should be started: the time for them has passed, or `stop` is set.

        Under a deterministic limit only `stop` counts.
        """
        return self._left() <= 0 or self.stop.is_set()

    def deadline(self) -> Deadline:
        """Return the end of the budget, reserved seconds included; under a deterministic limit only `stop` ends it."""
        at = self._started + self.limits.seconds if self.limits.deterministic is None else inf
        return Deadline(at, self.stop)

    def _left(self) -> float:
        """Return the seconds left for solves; infinite under a deterministic limit."""
        counted = self.limits.deterministic is not None
        return inf if counted else max(0.0, self.limits.seconds - self.reserved - self.seconds)

    def ask(self, problem: Problem, target: Value | None = None) -> Solution:
        """Solve a problem within its share of the time left, for value and bound alone.

        With a `target` in ticks it is only decided if some schedule has at most that value. If the solve was ended
        because it took far too long, the best list schedule is tried as well.
        """
        units = self.limits.deterministic
        if units is not None:
            part = replace(self.limits, deterministic=units / self._questions, target=target)
            return solve(problem, part, None, self.stop, engine=_VALUE_ALONE)
        left = self._left()
        part = replace(self.limits, seconds=left / max(1, self._questions - self._asked), target=target)
        self._asked += 1
        # Published schedules ignore the time limit, and are worth a little more time than the share.
        with _stopping_after(min(_PARAMS.longest * part.seconds, left), self.stop) as stop:
            found = solve(problem, part, None, stop, engine=_VALUE_ALONE)
            cut_short = stop.is_set() and not self.stop.is_set()
        if cut_short and not why_infeasible(problem):
            deadline = self.deadline()
            if found.timeline is None:
                deadline = Deadline(max(deadline.at, time.monotonic() + _PARAMS.first_seconds), self.stop)
            return within(deadline, lambda: with_list_schedule(found, part, self.stop)) or found
        return found


def _stopping_after(seconds: float, parent: Event) -> AbstractContextManager[Event]:
    """Return a context with an event that is set with the parent, or after `seconds`, for steps without time limit."""
    at = time.monotonic() + seconds
    return event_when(lambda: parent.is_set() or time.monotonic() >= at, _POLL)


def with_list_schedule(solution: Solution, limits: Limits, stop: Event) -> Solution:
    """Return the solution with the best list schedule in place of its own schedule, if that is better and valid.

    Else its own stays; a list schedule below the bound, a defect, is noted. List schedules are made for a share of the
    seconds of `limits`, until one has its `target` or `stop` is set.
    """
    chains = unequal_microbatches(solution.problem)
    best = _best_list_schedule(solution.problem if chains is None else chains.problem, limits, stop)
    if chains is not None and best is not None:
        best = timeline_back(chains, best)
    return solution if best is None else _better(solution, best)


def _best_list_schedule(problem: Problem, limits: Limits, stop: Event) -> Timeline | None:
    """Return the best of the list schedules and of one micro-batch after the other; None if there is no valid one."""
    first = best_times(problem, sequential(problem))
    best = None if validate(first) else first
    until = time.monotonic() + _PARAMS.lists_share * limits.seconds
    for schedule in listed(problem):
        timeline = best_times(problem, schedule)
        better = best is None or value_of(problem, timeline) < value_of(problem, best)
        if better and not validate(timeline):
            best = timeline
        enough = limits.target is not None and best is not None and value_of(problem, best) <= limits.target
        if stop.is_set() or time.monotonic() > until or enough:
            break
    return best


def _better(solution: Solution, first: Timeline) -> Solution:
    """Return the solution with this schedule if better; one that is invalid or below the bound adds a note."""
    assert solution.certificate is not None
    value = value_of(solution.problem, first)
    if solution.value_ticks is not None and solution.value_ticks <= value:
        return solution
    if validate(first) or value < solution.lower_bound_ticks:
        # This is a defect of this program: the solve's own schedule and its claims stay.
        note = defect_note("a list schedule was dropped, which breaks a rule or is below the bound")
        return replace(solution, notes=(*solution.notes, note))
    status = Status.OPTIMAL if value == solution.lower_bound_ticks else Status.FEASIBLE
    return in_common_ticks(replace(solution, status=status), first, solution.certificate)
