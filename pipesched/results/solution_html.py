"""A solution as a small HTML table, for notebooks; no picture, so that no drawing library is needed."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from pipesched.problem.formatting import amount
from pipesched.schedule.metrics import Metrics

if TYPE_CHECKING:
    from pipesched.results.solution import Solution


def solution_html(solution: Solution) -> str:
    """Schedule, value, bubble and peak memory: the published schedules that apply, then the one found."""
    problem = solution.problem
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

    applying = [one for one in solution.candidates if one.metrics is not None]
    rows = [row(one.name, one.metrics, one.fits) for one in applying if one.metrics is not None]
    if solution.metrics is not None:
        rows.append(row("pipesched", solution.metrics, True))
    heads = ("schedule", goal.value, "bubble", "largest peak memory", "fits")
    head = f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in heads)}</tr>"
    return f"<p>{escape(repr(solution))}</p><table>{head}{''.join(rows)}</table>"
