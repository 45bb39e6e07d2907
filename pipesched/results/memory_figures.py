"""Memory of each device in the file's unit, as programs read it: peak, static part and capacity."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics


def peak_memory(problem: Problem, metrics: Metrics) -> list[float]:
    """Peak memory of each device in the file's unit, with what it always holds."""
    return [float((peak + problem.static[d]) * problem.resolution) for d, peak in enumerate(metrics.peak_memory)]


def static_memory(problem: Problem) -> dict[str, list[float]]:
    """`static_memory` of each device in the file's unit; nothing where the problem has none."""
    static = [float(held * problem.resolution) for held in problem.static]
    return {"static_memory": static} if any(static) else {}


def memory_capacity(problem: Problem) -> list[float | None]:
    """The whole memory of each device in the file's unit; None where it has no limit."""
    return [
        None if c is None else float((c + problem.static[d]) * problem.resolution) for d, c in enumerate(problem.room)
    ]
