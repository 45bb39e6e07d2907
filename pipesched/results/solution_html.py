"""A solution as a small HTML table, for notebooks; no picture, so that no drawing library is needed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from pipesched.problem.formatting import amount
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import Metrics


def solution_html(title: str, problem: Problem, schedules: Iterable[tuple[str, Metrics | None, bool]]) -> str:
    """Schedule, value, bubble and peak memory of each (name, metrics, fits); none where there are no metrics."""
    goal = problem.objective

    def row(name: str, metrics: Metrics, fits: bool) -> str:
        bubble = metrics.bubble(goal)
        peak = float(max(metrics.peak_memory, default=0) * problem.resolution)
        cells = [
            name,
            amount(problem, metrics.value(goal)),
            "" if bubble is None else f"{100 * bubble:.2f} %",
            f"{peak:g} {problem.memory_unit}",
            "yes" if fits else "no",
        ]
        return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"

    rows = [row(name, metrics, fits) for name, metrics, fits in schedules if metrics is not None]
    heads = ("schedule", goal.value, "bubble", "largest peak memory", "fits")
    head = f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in heads)}</tr>"
    return f"<p>{escape(title)}</p><table>{head}{''.join(rows)}</table>"
