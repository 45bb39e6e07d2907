"""The HTML report of a solve: verdict, table, charts, argument of the bound, search, problem, reproduction."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from commands.reports.html.origin import file_section, reproduce_section
from commands.reports.solved import min_memory, robustness, sensitivity
from commands.reports.solved.solve import SolveResults, verdict
from commands.shared import not_applicable
from commands.shared.output import WHY_IDLE, idle_lines, idle_shown, memory_line, memory_range, percent, times_shown
from commands.shared.output import time as time_text
from pipesched.checking.check import check_bound
from pipesched.checking.finding import Verdict
from pipesched.problem.formatting import size, with_unit
from pipesched.problem.problem import Problem
from pipesched.results.analysis.bottleneck import bottleneck_sentences
from pipesched.results.analysis.explanation_text import footnotes
from pipesched.results.certificate import Certificate
from pipesched.results.comparison import OURS, with_solution
from pipesched.results.gap import gap
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import BUBBLE, IDLE
from pipesched.simulation.idle_causes import idle_times
from plots.html.parts import Course, Folded, Moment, Paragraph, Part, Points, Schedules, Section, Table
from plots.html.report import capitalised, report
from solver.analysis.bottleneck import bottleneck


def solve_report(found: SolveResults, args: Namespace, text: str | None) -> str:
    """Return the HTML page of a solve that found a schedule.

    `text` is the problem file as typed (None: it cannot be read again).
    """
    solution = found.solution
    problem, metrics = solution.problem, solution.metrics
    assert metrics is not None
    subtitle = f"{size(problem)}, placement {problem.placement.name}; minimise {problem.objective.name}"
    assert solution.timeline is not None
    idle = idle_lines(idle_times(solution.timeline).shares())
    figures: list[Part] = [Paragraph(capitalised(memory_line(problem, metrics)) + ".")]
    figures += [Paragraph(f"{capitalised(WHY_IDLE)}:"), Points(idle)] if idle else []
    moments = Folded("When the best value or the bound improved", [_moments(solution)])
    sections = [
        Section("Schedules side by side", [_table(solution), *_not_applicable(solution)]),
        Section("Passes and memory", [*figures, _timelines(solution)]),
        Section("Why not better", [*argument(problem, solution.certificate), *_why_not_better(found)]),
        *_sections(found),
        Section("The search", [_course(solution), moments]),
        file_section("The problem", text, args.problem),
        reproduce_section(args, solution.wall_seconds),
    ]
    if solution.notes:
        sections.insert(0, Section("Notes", [Points(solution.notes)]))
    summary = sentence(solution, verdict(found, metrics))
    summary += f" {capitalised(str(found.recommended))}." if found.recommended else ""
    return report(problem.name, subtitle, summary, sections)


def sentence(solution: Solution, proved: str) -> str:
    """Return the verdict of a solve, `proved`, and a sentence on the best published schedule that fits.

    It says how much more or less that takes, in per cent, that it is as good, or that none applies and fits.
    """
    problem, best, value = solution.problem, solution.best_candidate, solution.value_ticks
    proved = capitalised(proved) + "."
    if best is None or best.metrics is None or not value:
        return proved + (" No published schedule applies and fits." if best is None else "")
    more = best.metrics.value_ticks(problem.objective) / value - 1
    if not more:
        return f"{proved} The published schedule {best.name} is as good."
    apart = f"{percent(abs(more))} {'more' if more > 0 else 'less'}"
    return f"{proved} The best published schedule that fits, {best.name}, takes {apart}."


def _table(solution: Solution) -> Table:
    problem = solution.problem
    times = times_shown(problem)
    headers = [("schedule", False), *((str(one), True) for one in times), (IDLE, True), (BUBBLE, True)]
    headers += [
        (f"peak memory ({problem.memory_unit})", True),
        ("fits", False),
        (f"gap to bound (of {problem.objective.name})", True),
    ]
    rows: list[list[str]] = []
    strong = []
    for candidate in with_solution(solution):
        found = candidate.metrics
        if found is None:
            continue
        if candidate.name == OURS:
            strong.append(len(rows))
        cells = [candidate.name, *(time_text(problem, found.value_ticks(one)) for one in times)]
        cells += [*(percent(share) for _, share in idle_shown(problem, found)), memory_range(found)]
        excess = (
            percent(gap(found.value_ticks(problem.objective), solution.lower_bound_ticks)) if candidate.fits else "–"
        )
        rows.append([*cells, "yes" if candidate.fits else "no", excess])
    return Table(headers, rows, f"Lower bound: {time_text(problem, solution.lower_bound_ticks)}", strong)


def _not_applicable(solution: Solution) -> list[Part]:
    """Return the parts of the report on published schedules that are not in its table, with reasons.

    They are a list of those that do not fit the memory, a line on those not tried, and a list of those that do not
    apply; lists are folded, and empty ones left out.
    """
    too_large = _folded(not_applicable.lines_of_memory(solution.candidates))
    return [*too_large, *_folded(not_applicable.lines(solution.candidates))]


def _folded(lines: Sequence[str]) -> list[Part]:
    """Return the lines as parts: those that begin with a dash as points folded below the last of the others."""
    reasons = [line[2:] for line in lines if line.startswith("- ")]
    headings = [line for line in lines if not line.startswith("- ")]
    if not reasons:
        return list(map(Paragraph, headings))
    return [*map(Paragraph, headings[:-1]), Folded(headings[-1].removesuffix(":"), [Points(reasons)])]


def _timelines(solution: Solution) -> Schedules:
    """Return the timeline found, then those of published schedules that fit, best first."""
    assert solution.timeline is not None
    found = [(one.name, one.timeline) for one in with_solution(solution) if one.fits and one.name != OURS]
    published = [(name, timeline) for name, timeline in found if timeline is not None]
    return Schedules([(f"{OURS} (best found)", solution.timeline), *published])


def _why_not_better(found: SolveResults) -> list[Part]:
    solution, it = found.solution, found.explanation
    if it is None:
        limited_by = limiting(solution.problem, solution.certificate)
        hint = "`solve --explain` also tries what more memory, faster links and other stages would bring."
        return [*limited_by, Paragraph(hint)] if limited_by else []
    parts: list[Part] = [Points(sensitivity.lines(it))]
    if it.effects:
        headers = [(header.replace("\n", " "), number) for header, number in sensitivity.columns(solution)]
        parts.append(Table(headers, sensitivity.rows(it), sensitivity.TITLE))
    return [*parts, *map(Paragraph, footnotes(it))]


def _sections(found: SolveResults) -> list[Section]:
    sections = []
    if found.sizes.results:
        sections.append(Section("Sizes of micro-batches", [Points([*found.sizes.sentences()])]))
    if found.noise:
        lines = robustness.sentences(found.solution.problem, found.noise, found.solution.value)
        sections.append(Section("Under noise", [Points(lines)]))
    if found.memory:
        sections.append(Section("Least memory", [Points(min_memory.sentences(found.memory))]))
    return sections


def _course(solution: Solution) -> Course:
    problem = solution.problem
    moments = [
        Moment(one.seconds, None if one.value is None else float(one.value), float(one.lower_bound), one.phase)
        for one in solution.history
    ]
    return Course(problem.objective.name, problem.time_unit, moments, solution.wall_seconds)


def _moments(solution: Solution) -> Table:
    problem, rows = solution.problem, []
    for one in solution.history:
        best, apart = "none yet", ""
        if one.value is not None:
            best, apart = with_unit(one.value, problem.time_unit), percent(gap(one.value, one.lower_bound))
        rows.append([f"{one.seconds:.2f}", best, with_unit(one.lower_bound, problem.time_unit), apart, one.phase])
    headers = [("seconds", True), ("best", True), ("bound", True), ("gap to bound", True), ("by", False)]
    return Table(headers, rows)


# What a reader is told of the check, and of how to repeat it.
_CHECK_TEXTS = {
    Verdict.VERIFIED: (
        "Checked without the solver, from the evidence in schedule.json",
        " `pipesched check schedule.json` does it again.",
    ),
    Verdict.TRUSTED: (
        "Not checked without the solver",
        " `pipesched check schedule.json --again` repeats that search with other parameters.",
    ),
    Verdict.NOT_VERIFIED: ("Not checked without the solver", ""),
    Verdict.REFUSED: ("THE CHECK REFUSES IT", " `pipesched check schedule.json` does it again."),
}


def argument(problem: Problem, certificate: Certificate | None) -> list[Part]:
    """Return the argument of the bound, and the result of checking it without the solver.

    Empty without a certificate.
    """
    if certificate is None:
        return []
    finding = check_bound(problem, certificate)
    opening, repeat = _CHECK_TEXTS[finding.verdict]
    return [
        Paragraph(f"{certificate.text} ({certificate.name})"),
        Paragraph(f"{opening}: {finding.text.rstrip('.')}.{repeat}"),
    ]


def limiting(problem: Problem, certificate: Certificate | None) -> list[Part]:
    """Return paragraphs on what keeps the problem from being faster, by its analytic bounds; empty for a period.

    `certificate` is that of a solve, used in place of the analytic bounds if it is stronger.
    """
    if problem.objective.repeats:
        return []
    return [Points(bottleneck_sentences(bottleneck(problem, certificate)))]
