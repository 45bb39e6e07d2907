"""The table of schedules side by side, as people and as programs read it: shared by `compare` and `solve`."""

from __future__ import annotations

from collections.abc import Sequence

from commands.shared import not_applicable as grouped
from commands.shared.output import bubbles_shown, in_file_units, memory_range, percent, times_shown
from commands.shared.output import time as time_text
from commands.shared.tables import Column, table
from pipesched.problem.formatting import size
from pipesched.problem.problem import Problem
from pipesched.results.solution import Candidate, Solution, gap
from pipesched.results.solution_document import peak_memory

OURS = "pipesched"


def with_solution(solution: Solution) -> list[Candidate]:
    """The published schedules, best first, and the best one found below them."""
    problem = solution.problem
    ranked = sorted(solution.candidates, key=lambda c: (c.metrics is None, not c.fits, _value(c, problem) or 0))
    if solution.metrics is not None:
        ranked.append(Candidate(OURS, solution.timeline, solution.metrics, True))
    return ranked


def document(problem: Problem, candidates: Sequence[Candidate], lower_bound: int) -> dict[str, object]:
    """The object of `compare --json`."""
    return {
        "name": problem.name,
        "objective": problem.objective.value,
        "rows": [_row(problem, candidate, lower_bound) for candidate in candidates],
        "lower_bound": in_file_units(problem, lower_bound),
    }


def _row(problem: Problem, candidate: Candidate, lower_bound: int) -> dict[str, object]:
    metrics, value = candidate.metrics, _value(candidate, problem)
    if metrics is None or value is None:
        nothing = dict.fromkeys(("value", "makespan", "span", "bubble", "peak_memory", "gap"))
        status = {"fits": False, "status": "does not apply", "reason": candidate.reason}
        return {"schedule": candidate.name, **nothing, **status}
    return {
        "schedule": candidate.name,
        "value": in_file_units(problem, value),
        "makespan": in_file_units(problem, metrics.makespan),
        "span": in_file_units(problem, metrics.span),
        "bubble": metrics.bubbles,
        "peak_memory": peak_memory(problem, metrics),
        "fits": candidate.fits,
        # A schedule that breaks the memory cap may lie below the bound of those that keep it.
        "gap": gap(value, lower_bound) if candidate.fits else None,
        "status": "ok",
        "reason": candidate.reason,
    }


def show(problem: Problem, candidates: Sequence[Candidate], lower_bound: int) -> None:
    """Print the table, then which schedules do not apply and why."""
    unit = f"\n({problem.time_unit})" if problem.time_unit else ""
    aim = problem.objective
    columns = [
        Column("schedule"),
        *(Column(f"{time}{unit}", True, 0 if time is aim else 3) for time in times_shown(problem)),
        *(Column(f"bubble\n({of})", True, 2 if of is aim else 4) for of in bubbles_shown(problem)),
        Column(f"peak memory\n({problem.memory_unit})", True, 1),
        Column("fits"),
        Column(f"{aim.value}\ngap", True),
    ]
    rows: list[list[str]] = []
    ours: list[int] = []
    for candidate in candidates:
        metrics, value = candidate.metrics, _value(candidate, problem)
        if metrics is None or value is None:
            continue
        if candidate.name == OURS:
            ours.append(len(rows))
        values = [time_text(problem, metrics.value(time)) for time in times_shown(problem)]
        times = [text.removesuffix(problem.time_unit).strip() for text in values]
        excess = percent(gap(value, lower_bound)) if candidate.fits else "–"
        shares = [percent(metrics.bubble(of)) for of in bubbles_shown(problem)]
        fits = "yes" if candidate.fits else "no"
        rows.append([candidate.name, *times, *shares, memory_range(problem, metrics), fits, excess])
    bound = time_text(problem, lower_bound)
    title = f"{problem.name}: {size(problem)} · minimise {problem.objective.value} · lower bound {bound}"
    table(title, columns, rows, ours)
    for line in grouped.lines(candidates):
        print(line)


def _value(candidate: Candidate, problem: Problem) -> int | None:
    return None if candidate.metrics is None else candidate.metrics.value(problem.objective)
