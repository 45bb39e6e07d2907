"""One solve: lower bounds and schedules, slice by slice, until they meet or time is up."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event

from pipesched.arguments import A_PROBLEM, refuse_other
from pipesched.errors import BadInput
from pipesched.files.features.catalogue import refused_with_value
from pipesched.problem.chains.microbatch_chains import unequal_microbatches
from pipesched.problem.feasibility import refuse_overflow, why_infeasible
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from pipesched.schedule.chain_timelines import timeline_into
from pipesched.schedule.timeline import Timeline
from solver.cyclic.solve_period import solve_period
from solver.engine.engine import ENGINE, WITHOUT_SEARCH
from solver.engine.incumbent.incumbent import Report
from solver.engine.incumbent.start import Start, start_timelines
from solver.engine.incumbent.unequal import report_of, solution_of
from solver.engine.long_run import search_long_run
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.limits import Limits, limits_from
from solver.most_free import leaving_most


def solve(
    problem: Problem,
    limits: Limits | None = None,
    report: Report | None = None,
    stop: Event | None = None,
    start: Start | None = None,
    engine: Engine | None = None,
    *,
    seconds: float | None = None,
) -> Solution:
    """Return the best schedule found, and the proved lower bound.

    `seconds` is the time limit, instead of that in `limits`. `report` is called at every improvement of value or bound;
    setting `stop` ends the search with the best found so far. `start` is a schedule, a timeline or a previous solution
    to continue from: the result is never worse. Without `limits` and `seconds` the search has 60 s and all cores.
    `engine` replaces the usual one, to measure the effect of its parts. An infeasible problem is no error: its solution
    has no timeline, and a reason. Raises `BadInput` if `problem`, `limits` or `seconds` has a wrong type or value, if
    the times are too large to be added up, if the start does not fit the problem, and for the objective period if the
    problem has none. The objectives period and free memory take no start.
    """
    refuse_other("solve", problem, Problem, A_PROBLEM)
    limits = limits_from("solve", limits, seconds)
    refuse_overflow(problem)
    report, stop = report or (lambda _: None), stop or Event()
    engine = engine or ENGINE
    if problem.objective.leaves is not None:
        if start is not None:
            raise BadInput("start: found one for the objective free_memory; allowed: for a time alone")
        return leaving_most(lambda one, within: solve(one, within, report, stop, None, engine), problem, limits)
    if problem.objective.repeats:
        for line in refused_with_value(problem, "objective", problem.objective.name):
            raise BadInput(line)
        if start is not None:
            raise BadInput("start: found one for the objective period; allowed: for makespan or span")
        return solve_period(problem, limits, report, stop, search_long_run=search_long_run)
    reason = why_infeasible(problem)
    known = [] if start is None or reason is not None else start_timelines(problem, start)
    chains = unequal_microbatches(problem)
    if chains is None:
        search = Search(problem, limits, report, stop, engine)
    else:
        known = [timeline_into(chains, timeline) for timeline in known]
        search = Search(chains.problem, limits, report_of(chains, report), stop, engine, chains=chains)
    found = _searched(search, known, reason)
    return found if chains is None else solution_of(chains, found)


def _searched(search: Search, known: Sequence[Timeline], reason: str | None) -> Solution:
    """Return the engine's solution, from the timelines `known`; if `reason` says why none exists, an infeasible one."""
    if reason is not None:
        return search.infeasible(reason)
    if known:
        search.incumbent.phase = "start"
    for timeline in known:
        search.start_from_timeline(timeline)
    run(search)
    return search.engine.finish(search)


def without_search(problem: Problem, limits: Limits | None = None) -> Solution:
    """Return the solution of bounds and published schedules alone, of as many as the time limit allows.

    `limits` None: those of `Limits()`. Raises `BadInput` if times are too large to be added up, or for the objective
    period if the problem has none.
    """
    if problem.objective.leaves is not None:
        return leaving_most(without_search, problem, limits or Limits())
    if problem.objective.repeats and not problem.network.scale:
        return solve_period(problem, limits, search=False)
    return solve(problem, limits, engine=WITHOUT_SEARCH)
