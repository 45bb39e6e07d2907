"""The report of a solve: the same findings as on the terminal, as a page of Markdown to keep."""

from __future__ import annotations

from commands import explaining, less_memory
from commands.output import bubbles_shown, memory_amounts, rate, times_shown
from commands.output import time as time_text
from commands.rows import OURS, with_solution
from pipesched.amounts import plain, size
from pipesched.solution import Solution, gap
from pipesched.version import VERSION
from solver.explain import Explanation
from solver.least_memory import LeastMemory


def report(solution: Solution, memory: LeastMemory | None = None, explanation: Explanation | None = None) -> str:
    """The Markdown text; a section each for the least memory and for why not better, where they were asked for."""
    problem, metrics = solution.problem, solution.metrics
    assert metrics is not None
    certificate = solution.certificate
    lines = [
        f"# {problem.name}",
        "",
        f"{size(problem)}, placement {problem.placement.name}; objective {problem.objective.value}.",
        "",
        f"- status: **{solution.status.value}**",
        f"- value: {time_text(problem, solution.value)}",
        f"- lower bound: {time_text(problem, solution.lower_bound)} (gap {100 * (solution.gap or 0):.2f} %)",
        f"- peak memory of each device ({problem.memory.unit}): "
        + ", ".join(map(plain, memory_amounts(problem, metrics))),
        "",
    ]
    if certificate:
        lines += ["## Why no schedule is below the bound", "", f"{certificate.text} ({certificate.kind})", ""]
    if memory:
        lines += ["## Least memory", "", *(f"- {line}" for line in less_memory.sentences(problem, memory)), ""]
    if explanation:
        lines += ["## Why not better", "", *_why_not_better(solution, explanation), ""]
    lines += ["## Schedules side by side", "", *_table(solution), "", *_search(solution), ""]
    return "\n".join([*lines, "![Gantt chart](gantt.png)", "", "![Memory](memory.png)", "", f"pipesched {VERSION}", ""])


def _why_not_better(solution: Solution, explanation: Explanation) -> list[str]:
    said = [f"- {line}" for line in explaining.lines(explanation)]
    if not explanation.effects:
        return said
    headers = [header.replace("\n", " ") for header, _ in explaining.columns(solution)]
    rows = [headers, ["---"] * len(headers), *explaining.rows(explanation)]
    return [
        *said,
        "",
        f"{explaining.TITLE}:",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        *explaining.footnotes(explanation),
    ]


def _table(solution: Solution) -> list[str]:
    problem = solution.problem
    times, bubbles = times_shown(problem), bubbles_shown(problem)
    headers = ["schedule", *times, *(f"bubble({of})" for of in bubbles), "fits", "gap"]
    lines = [f"| {' | '.join(headers)} |", "|---" * len(headers) + "|"]
    for candidate in with_solution(solution):
        found = candidate.metrics
        if found is None:
            lines.append(f"| {candidate.name} | does not apply: {candidate.reason} |" + " |" * (len(headers) - 2))
            continue
        excess = f"{100 * gap(found.value(problem.objective), solution.lower_bound):.2f} %" if candidate.fits else "–"
        name = f"**{OURS}**" if candidate.name == OURS else candidate.name
        cells = [time_text(problem, found.value(time)) for time in times] + [rate(found.bubble(of)) for of in bubbles]
        lines.append(f"| {' | '.join([name, *cells, 'yes' if candidate.fits else 'no', excess])} |")
    return lines


def _search(solution: Solution) -> list[str]:
    """How value and bound came together."""
    problem = solution.problem
    lines = ["## The search", "", "| seconds | best | bound | by |", "|---|---|---|---|"]
    for moment in solution.history:
        best = time_text(problem, moment.value) if moment.value is not None else "none yet"
        lines.append(f"| {moment.seconds:.1f} | {best} | {time_text(problem, moment.lower_bound)} | {moment.doing} |")
    return [*lines, "", f"Total: {solution.wall_seconds:.1f} s."]
