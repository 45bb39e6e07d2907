"""One solve: bounds from below and schedules from above, part by part, until they meet or time is up."""

from __future__ import annotations

from math import inf
from threading import Event

from pipesched.feasibility import why_infeasible
from pipesched.problem import Objective, Problem
from pipesched.solution import Solution
from solver.limits import Limits
from solver.parts import Parts
from solver.search import Search
from solver.shorter import by_shorter
from solver.solve_period import solve_period
from solver.standing import Report


def solve(
    problem: Problem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    parts: Parts | None = None,
) -> Solution:
    """The best schedule found, and what is proved of it.

    `report` hears of every improvement; setting `stop` ends the search with what was found; `parts` leaves parts of
    the engine out, to measure them. ValueError for passes of several tasks, which this version does not solve.
    """
    report, stop, limits = report or (lambda _: None), stop or Event(), limits or Limits()
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, limits, report, stop)
    search = Search(problem, limits, report, stop, parts or Parts())
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    by_shorter(search)
    # A long problem that a shorter one gave a schedule to needs no other.
    if search.best is None:
        search.run()
    return search.solution()


def without_search(problem: Problem) -> Solution:
    """Bounds and published schedules alone."""
    if problem.objective is Objective.PERIOD:
        return solve_period(problem, search=False)
    search = Search(problem, Limits(seconds=inf), lambda _: None, Event(), Parts())
    search.whole_table = True
    reason = why_infeasible(problem)
    if reason is not None:
        return search.infeasible(reason)
    search.published()
    return search.solution()
