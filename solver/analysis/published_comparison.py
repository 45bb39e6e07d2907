"""Comparison of every published schedule with the best schedule found."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from threading import Event

from heuristics.catalogue import HEURISTICS, Heuristic, schedule_named
from pipesched.deadline import Deadline, within
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS, Comparison, with_solution
from pipesched.results.solution import Solution, Status
from solver.cyclic.extended_candidate import beats, extended_candidate
from solver.engine.search import SEARCH
from solver.limits import Limits
from solver.parameters import tunable, tuned
from solver.published import candidate
from solver.solve import solve


@dataclass(frozen=True)
@tunable
class ComparisonParams:
    """Time for published schedules that a search has not tried."""

    share: float = tuned(0.1, "of the time limit, which a search of very many passes leaves them", 0, 0.5)
    least_share: float = tuned(0.05, "of the time limit, even where the search has used all of it", 0, 0.1)


_PARAMS = ComparisonParams()


def compare(problem: Problem, limits: Limits | None = None, schedules: Sequence[str] | None = None) -> Comparison:
    """Return the results of published schedules (all, or those named), and the best schedule found, named `pipesched`.

    Those that fit the memory are first, best first; then those that exceed it; then those that do not apply, with the
    reason. The schedule found, if there is one, is last. `limits` None: those of `Limits()`. Raises `BadInput` for an
    unknown name, and for a problem that `solve` refuses.
    """
    wanted = HEURISTICS.names() if schedules is None else [schedule_named(name).name for name in schedules]
    limits = limits or Limits()
    solution = all_tried(solve(problem, search_limits(problem, limits)), wanted, limits)
    return Comparison((one for one in with_solution(solution) if one.name in {*wanted, OURS}), solution)


def search_limits(problem: Problem, limits: Limits) -> Limits:
    """Return the limits of a comparison's search; with very many passes they leave time for published schedules.

    They are shorter in seconds alone: where work is counted they are returned as they are.
    """
    few = 3 * sum(map(len, problem.microbatches_of)) <= SEARCH.very_long
    return (
        limits
        if few or limits.deterministic is not None
        else replace(limits, seconds=limits.seconds * (1 - _PARAMS.share))
    )


def all_tried(solution: Solution, names: Sequence[str], limits: Limits, stop: Event | None = None) -> Solution:
    """Return the solution with the results of all named schedules, including those that the search did not try.

    These get the time that the search left, or a small share of the limit (no limit where work is counted), until
    `stop` is set; a schedule for which no time is left is listed as not tried. They are added to its candidates after
    those tried, by name. A published schedule that fits and is better than the schedule found becomes the solution's
    schedule, except for the period. Raises `BadInput` for an unknown name.
    """
    stop = stop or Event()
    untried = sorted({*names} - {one.name for one in solution.candidates})
    left = max(limits.seconds - solution.wall_seconds, _PARAMS.least_share * limits.seconds)
    until = inf if limits.deterministic is not None else time.monotonic() + left
    published: list[Candidate] = []
    for name in untried:
        # For the period the solution's problem has finer ticks.
        work = partial(_tried, solution, schedule_named(name))
        found = None if stop.is_set() else within(Deadline.after(until - time.monotonic(), stop), work)
        published.append(found or Candidate(name, None, None, False, "time limit reached", tried=False))
    return _with_best_published(replace(solution, candidates=(*solution.candidates, *published)))


def _tried(solution: Solution, heuristic: Heuristic) -> Candidate:
    """Return the result of a published schedule on the solution's problem.

    For very many micro-batches it is computed from fewer where that is exact, unless it would be the best schedule
    known.
    """
    problem, known = solution.problem, solution.value_ticks
    if not problem.objective.repeats:
        found = extended_candidate(problem, heuristic)
        if found is not None and not (found.fits and beats(found, known)):
            return found
    return candidate(problem, heuristic)


def _with_best_published(solution: Solution) -> Solution:
    """Return the solution with the best published schedule instead of its own, if it is better.

    That happens if the search had too little time. Unchanged for the period.
    """
    problem, known = solution.problem, solution.value_ticks
    if problem.objective.repeats:
        return solution
    found = [
        (one.metrics.value_ticks(problem.objective), one)
        for one in solution.candidates
        if one.fits and one.metrics is not None and one.timeline is not None and one.timeline.problem == problem
    ]
    value, best = min(found, key=lambda each: each[0], default=(None, None))
    if best is None or value is None or (known is not None and value >= known):
        return solution
    status = Status.OPTIMAL if value == solution.lower_bound_ticks else Status.FEASIBLE
    return replace(solution, timeline=best.timeline, metrics=best.metrics, status=status)
