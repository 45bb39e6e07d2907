"""Published schedules compared with the best one found, best first: what `compare` shows."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate, ranked
from pipesched.results.gap import gap
from pipesched.results.memory_figures import peak_memory
from pipesched.results.solution import Solution

OURS = "pipesched"  # the name of the schedule that the solve found


def with_solution(solution: Solution) -> list[Candidate]:
    """The published schedules, best first, and the best one found below them."""
    found = ranked(solution.candidates, solution.problem.objective)
    if solution.metrics is not None:
        found.append(Candidate(OURS, solution.timeline, solution.metrics, True))
    return found


def comparison_document(problem: Problem, candidates: Sequence[Candidate], lower_bound: int) -> dict[str, object]:
    """The object of `compare --json`; the bound is in ticks."""
    return {
        "name": problem.name,
        "objective": problem.objective.value,
        "rows": [_row(problem, candidate, lower_bound) for candidate in candidates],
        "lower_bound": problem.in_units(lower_bound),
    }


def _row(problem: Problem, candidate: Candidate, lower_bound: int) -> dict[str, object]:
    metrics = candidate.metrics
    if metrics is None:
        nothing = dict.fromkeys(("value", "makespan", "span", "bubble", "idle", "peak_memory", "gap"))
        status = {
            "fits": False,
            "status": "does not apply",
            "reason": candidate.reason,
        }
        return {"schedule": candidate.name, **nothing, **status}
    value = metrics.value(problem.objective)
    return {
        "schedule": candidate.name,
        "value": problem.in_units(value),
        "makespan": problem.in_units(metrics.makespan),
        "span": problem.in_units(metrics.span),
        "bubble": metrics.bubbles,
        "idle": metrics.idles,
        "peak_memory": peak_memory(problem, metrics),
        "fits": candidate.fits,
        # A schedule that breaks the memory cap may lie below the bound of those that keep it.
        "gap": gap(value, lower_bound) if candidate.fits else None,
        "status": "ok",
        "reason": candidate.reason,
    }
