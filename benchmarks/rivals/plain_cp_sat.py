"""Plain CP-SAT as a baseline: intervals, no-overlap and cumulative alone, with no bound of ours to start from."""

from __future__ import annotations

from threading import Event

from formulations.exact.exact_model import improving
from pipesched.results.gap import gap
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from solver.backends.exact_search import improve
from solver.limits import Limits


def plain_gap(solution: Solution, limits: Limits) -> float | None:
    """The gap of a plain model given the same time, from the best published schedule; None where none fits."""
    first = solution.best_candidate
    if first is None or first.timeline is None or first.metrics is None:
        return None
    value = first.metrics.value(solution.problem.objective)
    model = improving(solution.problem, first.timeline, value, 0, most_literals=-1)
    outcome = improve(model, limits, limits.seconds, Event(), lambda *_: None)
    if outcome.timeline is not None:
        value = min(value, measure(outcome.timeline).value(solution.problem.objective))
    return gap(value, outcome.bound)
