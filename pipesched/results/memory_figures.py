"""Memory of each device in the file's unit, as programs read it: static part and capacity."""

from __future__ import annotations

from pipesched.problem.problem import Problem


def static_memory(problem: Problem) -> dict[str, list[float]]:
    """`static_memory` of each device in the file's unit; nothing where the problem has none."""
    static = [float(held * problem.resolution) for held in problem.static]
    return {"static_memory": static} if any(static) else {}


def memory_capacity(problem: Problem) -> list[float | None]:
    """The whole memory of each device in the file's unit; None where it has no limit."""
    return [
        None if c is None else float((c + problem.static[d]) * problem.resolution) for d, c in enumerate(problem.room)
    ]
