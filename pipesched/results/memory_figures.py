"""Memory of each device in the file's unit, as programs read it: peak, static part and capacity."""

from __future__ import annotations

from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics


def peak_memory(problem: Problem, metrics: Metrics) -> list[float]:
    """Peak memory of each device in the file's unit, with what it always holds."""
    memory = problem.memory
    return [float((peak + memory.held(d)) * memory.resolution) for d, peak in enumerate(metrics.peak_memory)]


def static_memory(problem: Problem) -> dict[str, list[float]]:
    """`static_memory` of each device in the file's unit; nothing where the problem has none."""
    memory = problem.memory
    return {"static_memory": [float(held * memory.resolution) for held in memory.static]} if memory.static else {}


def memory_capacity(problem: Problem) -> list[float | None]:
    """The whole memory of each device in the file's unit; None where it has no limit."""
    memory = problem.memory
    return [
        None if c is None else float((c + memory.held(d)) * memory.resolution) for d, c in enumerate(memory.capacity)
    ]
