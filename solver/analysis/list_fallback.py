"""A solve that was cut short may not have come to the list schedules: the best of them takes its place if better."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event

from pipesched.errors import defect_note
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution, Status
from pipesched.schedule.rescale import value_of
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.timing import best_times
from solver.engine.incumbent.common_ticks import in_common_ticks
from solver.limits import Limits
from solver.tuning import SHARE


def with_list_schedule(solution: Solution, limits: Limits, stop: Event) -> Solution:
    """The solution, with the best list schedule in place of its own where that is better."""
    return _better(solution, _best_list_schedule(solution.problem, limits, stop))


def _best_list_schedule(problem: Problem, limits: Limits, stop: Event) -> Timeline:
    best = best_times(problem, sequential(problem))
    value = value_of(problem, best)
    until = time.monotonic() + SHARE * limits.seconds
    for schedule in list_schedules(problem):
        timeline = best_times(problem, schedule)
        if value_of(problem, timeline) < value:
            best, value = timeline, value_of(problem, timeline)
        if stop.is_set() or time.monotonic() > until or (limits.target is not None and value <= limits.target):
            break
    return best


def _better(solution: Solution, first: Timeline) -> Solution:
    """The solution, with this schedule in place of its own where it is better; it must be valid."""
    assert solution.certificate is not None
    value = value_of(solution.problem, first)
    if solution.value_ticks is not None and solution.value_ticks <= value:
        return solution
    if validate(first) or value < solution.lower_bound_ticks:
        # A defect of this tool: the solve's own schedule stays, and so does what it said.
        note = defect_note("a list schedule was dropped, which breaks a rule or is below the bound")
        return replace(solution, notes=(*solution.notes, note))
    status = Status.OPTIMAL if value == solution.lower_bound_ticks else Status.FEASIBLE
    return in_common_ticks(replace(solution, status=status), first, solution.certificate)
