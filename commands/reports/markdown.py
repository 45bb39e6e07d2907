"""The report of a solve: the same findings as on the terminal, as a page of Markdown to keep."""

from __future__ import annotations

from commands.reports import min_memory, robustness, sensitivity
from commands.shared import not_applicable
from commands.shared.output import bubbles_shown, memory_line, percent, times_shown
from commands.shared.output import time as time_text
from pipesched.problem.formatting import size
from pipesched.results.comparison import OURS, with_solution
from pipesched.results.explanation import Explanation
from pipesched.results.explanation_text import footnotes
from pipesched.results.gap import gap
from pipesched.results.least_memory import LeastMemory
from pipesched.results.robustness import Robustness
from pipesched.results.solution import Solution
from pipesched.version import VERSION


def report(
    solution: Solution,
    memory: LeastMemory | None = None,
    explanation: Explanation | None = None,
    noise: Robustness | None = None,
) -> str:
    """The Markdown text; a section each for noise, the least memory and why not better, where there is something."""
    problem, metrics = solution.problem, solution.metrics
    assert metrics is not None
    certificate = solution.certificate
    lines = [
        f"# {problem.name}",
        "",
        f"{size(problem)}, placement {problem.placement.name}; objective {problem.objective.value}.",
        "",
        f"- status: **{solution.status.value}**",
        f"- value: {time_text(problem, solution.value_ticks)}",
        f"- lower bound: {time_text(problem, solution.lower_bound_ticks)} (gap {percent(solution.gap or 0)})",
        f"- {memory_line(problem, metrics)}",
        *(f"- note: {text}" for text in solution.notes),
        "",
    ]
    if certificate:
        lines += ["## Why no schedule is below the bound", "", f"{certificate.text} ({certificate.kind})", ""]
    if noise:
        found = robustness.sentences(problem, noise, solution.value_ticks)
        lines += ["## Under noise", "", *(f"- {line}" for line in found), ""]
    if memory:
        lines += ["## Least memory", "", *(f"- {line}" for line in min_memory.sentences(memory)), ""]
    if explanation:
        lines += ["## Why not better", "", *_why_not_better(solution, explanation), ""]
    lines += ["## Schedules side by side", "", *_table(solution), "", *_search(solution), ""]
    # Names from files are text, and no part of the page's own marks.
    lines = [line.replace("&", "&amp;").replace("<", "&lt;") for line in lines]
    return "\n".join([*lines, "![Gantt chart](gantt.png)", "", "![Memory](memory.png)", "", f"pipesched {VERSION}", ""])


def _why_not_better(solution: Solution, explanation: Explanation) -> list[str]:
    said = [f"- {line}" for line in sensitivity.lines(explanation)]
    if not explanation.effects:
        return said
    headers = [header.replace("\n", " ") for header, _ in sensitivity.columns(solution)]
    rows = [headers, ["---"] * len(headers), *sensitivity.rows(explanation)]
    return [
        *said,
        "",
        f"{sensitivity.TITLE}:",
        "",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        *footnotes(explanation),
    ]


def _table(solution: Solution) -> list[str]:
    problem = solution.problem
    times, bubbles = times_shown(problem), bubbles_shown(problem)
    headers = ["schedule", *times, *(f"bubble({of})" for of in bubbles), "fits", "gap"]
    lines = [f"| {' | '.join(headers)} |", "|---" * len(headers) + "|"]
    for candidate in with_solution(solution):
        found = candidate.metrics
        if found is None:
            continue
        excess = percent(gap(found.value(problem.objective), solution.lower_bound_ticks)) if candidate.fits else "–"
        name = f"**{OURS}**" if candidate.name == OURS else candidate.name
        cells = [time_text(problem, found.value(time)) for time in times] + [
            percent(found.bubble(of)) for of in bubbles
        ]
        lines.append(f"| {' | '.join([name, *cells, 'yes' if candidate.fits else 'no', excess])} |")
    for line in not_applicable.lines(solution.candidates):
        lines += [line] if line.startswith("- ") else ["", line, ""]
    return lines


def _search(solution: Solution) -> list[str]:
    """How value and bound came together."""
    problem = solution.problem
    lines = ["## The search", "", "| seconds | best | bound | by |", "|---|---|---|---|"]
    for moment in solution.history:
        best = time_text(problem, moment.value) if moment.value is not None else "none yet"
        lines.append(f"| {moment.seconds:.1f} | {best} | {time_text(problem, moment.lower_bound)} | {moment.phase} |")
    return [*lines, "", f"Total: {solution.wall_seconds:.1f} s."]
