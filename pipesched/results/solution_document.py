"""A solution as an object of JSON: the answer of `solve --json`, but for what the command adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics

if TYPE_CHECKING:
    from pipesched.results.solution import Solution


def solution_document(solution: Solution) -> dict[str, object]:
    """Times and memory in the file's units."""
    problem, metrics, best = solution.problem, solution.metrics, solution.best_candidate
    period = metrics.period if metrics else None
    document: dict[str, object] = {
        "name": problem.name,
        "objective": problem.objective.value,
        "status": solution.status.value,
        "value": solution.value,
        "lower_bound": solution.lower_bound,
        "gap": solution.gap,
        "makespan": solution.makespan,
        "span": solution.span,
        "period": None if period is None else problem.in_units(period),
        "bubble": metrics.bubbles if metrics else None,
        "idle_ratio": metrics.idle_ratio if metrics else None,
        "peak_memory": peak_memory(problem, metrics) if metrics else None,
        "memory_capacity": _capacity(problem),
        **static_memory(problem),
        "certificate": solution.certificate.document() if solution.certificate else None,
        "best_heuristic": None if best is None else {"name": best.name, "value": best.value},
        "notes": list(solution.notes),
        "wall_seconds": round(solution.wall_seconds, 3),
    }
    return document | ({"reason": solution.reason} if solution.reason else {})


def peak_memory(problem: Problem, metrics: Metrics) -> list[float]:
    """Peak memory of each device in the file's unit, with what it always holds."""
    return [float((peak + problem.static[d]) * problem.resolution) for d, peak in enumerate(metrics.peak_memory)]


def static_memory(problem: Problem) -> dict[str, list[float]]:
    """`static_memory` of each device in the file's unit; nothing where the problem has none."""
    static = [float(held * problem.resolution) for held in problem.static]
    return {"static_memory": static} if any(static) else {}


def _capacity(problem: Problem) -> list[float | None]:
    """The whole memory of each device in the file's unit; None where it has no limit."""
    return [
        None if c is None else float((c + problem.static[d]) * problem.resolution) for d, c in enumerate(problem.room)
    ]
