"""Start of a solve from an earlier schedule, timeline or solution, checked against the problem."""

from __future__ import annotations

from pipesched.errors import BadInput, Deadlock
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer
from pipesched.results.solution import Solution
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate, validate_schedule
from pipesched.validation.violation import Violation
from solver.construction.timing import best_times

Start = Schedule | Timeline | Solution


def start_timelines(problem: Problem, start: Start) -> list[Timeline]:
    """Return timelines made of the result of an earlier search: its order with the best times, and its original starts.

    The original starts are left out where they are not valid for this problem, since the earlier problem may have had
    other durations or memory. Raises `BadInput` if the result has no schedule, or its order does not fit this problem.
    """
    known = start.timeline if isinstance(start, Solution) else start
    if known is None:
        raise BadInput("start: found a solution without a schedule; allowed: one with a schedule")
    schedule = known.schedule if isinstance(known, Timeline) else known
    _refuse(validate_schedule(problem, schedule))
    try:
        timed = best_times(problem, schedule)
    except Deadlock as deadlock:
        raise _misfit(str(deadlock)) from None
    _refuse(validate(timed))
    with_given_starts = _in_this_problem(problem, known) if isinstance(known, Timeline) else None
    return [timed] if with_given_starts is None or validate(with_given_starts) else [timed, with_given_starts]


def _in_this_problem(problem: Problem, timeline: Timeline) -> Timeline | None:
    """Return a timeline of another problem, which differs in times or memory, as one of this problem: its starts stay.

    The result is of this problem in the ticks of the timeline; None unless this problem's tick is a multiple of those.
    """
    parts = problem.tick / timeline.problem.tick
    if parts.denominator != 1:
        return None
    return Timeline(finer(problem, parts.numerator), timeline.schedule, timeline.starts)


def _refuse(violations: list[Violation]) -> None:
    if violations:
        raise _misfit(f"{violations[0].rule}: {violations[0].text}")


def _misfit(reason: str) -> BadInput:
    return BadInput(f"start: found a schedule that does not fit the problem ({reason}); allowed: one that does")
