"""A solution as HTML for notebooks: Gantt chart, table of schedules, and the argument of the bound."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from pipesched.notebook.timeline_html import framed, timeline_svg
from pipesched.problem.formatting import amount, plain
from pipesched.problem.problem import Problem
from pipesched.results.certificate import Certificate
from pipesched.schedule.metrics import BUBBLE, IDLE, Metrics
from pipesched.schedule.timeline import Timeline


def solution_html(
    title: str,
    problem: Problem,
    schedules: Iterable[tuple[str, Metrics | None, bool]],
    timeline: Timeline | None = None,
    certificate: Certificate | None = None,
) -> str:
    """Return the HTML: value, idle time and peak memory of each (name, metrics, fits); chart and certificate if given.

    Rows without metrics are left out.
    """
    goal = problem.objective

    def row(name: str, metrics: Metrics, fits: bool) -> str:
        peak = max(metrics.peak_memory, default=0.0)
        cells = [
            name,
            amount(problem, metrics.value_ticks(goal)),
            *("" if one is None else f"{100 * one:.2f} %" for one in (metrics.idle(goal), metrics.bubble(goal))),
            f"{plain(peak)} {problem.memory_unit}",
            "yes" if fits else "no",
        ]
        return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"

    rows = [row(name, metrics, fits) for name, metrics, fits in schedules if metrics is not None]
    heads = ("schedule", goal.name, IDLE, BUBBLE, "largest peak memory", "fits")
    head = f"<tr>{''.join(f'<th>{escape(one)}</th>' for one in heads)}</tr>"
    table = f"<table>{head}{''.join(rows)}</table>"
    why = "" if certificate is None else f"<p>lower bound ({escape(certificate.name)}): {escape(certificate.text)}</p>"
    return framed(title, ("" if timeline is None else timeline_svg(timeline)) + table + why)
