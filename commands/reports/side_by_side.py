"""Report of `compare A B`: one table of several problems, with each schedule's value and gap on each.

If a schedule does not fit a problem's memory, the cell of its value says so, since that column is always shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from commands.shared.output import percent
from commands.shared.output import time as time_text
from commands.shared.tables import Column, table
from pipesched.problem.formatting import peak_of
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS, comparison_document, with_solution
from pipesched.results.gap import gap
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import Metrics


def documents(solutions: Sequence[Solution], wanted: Sequence[str]) -> dict[str, object]:
    """Return the object of `compare A B --json`: under `problems` the object of `compare --json` of each problem.

    `wanted` are the names of the schedules in it.
    """
    return {
        "problems": [
            comparison_document(one.problem, _candidates(one, wanted), one.lower_bound_ticks) for one in solutions
        ],
    }


def show(solutions: Sequence[Solution], wanted: Sequence[str]) -> None:
    """Print a row for each schedule of `wanted` that applies to some problem, with two columns for each problem.

    Schedules that fit no problem are after those that fit one; ours is last. Then the bounds, and why a problem is
    infeasible.
    """
    columns, found = [Column("schedule")], []
    for solution in solutions:
        problem = solution.problem
        unit = f"\n({problem.time_unit})" if problem.time_unit else ""
        columns += [
            Column(f"{problem.name}\n{problem.objective.name}{unit}", True),
            Column(f"{problem.name}\ngap to bound", True, 1),
        ]
        found.append({c.name: c for c in _candidates(solution, wanted) if c.metrics is not None})
    fitting = {name for by_name in found for name, one in by_name.items() if one.fits}
    names = sorted(
        {name for by_name in found for name in by_name} - {OURS}, key=lambda name: (name not in fitting, name)
    )
    names += [OURS] * any(OURS in by_name for by_name in found)
    rows = [
        [
            name,
            *(cell for one, by_name in zip(solutions, found, strict=True) for cell in _cells(one, by_name.get(name))),
        ]
        for name in names
    ]
    bold = [number for number, name in enumerate(names) if name == OURS]
    table("side by side; – where a schedule does not apply", columns, rows, bold)
    for solution in solutions:
        problem = solution.problem
        print(f"{problem.name}: none is below {time_text(problem, solution.lower_bound_ticks)}")
        if solution.reason:
            print(f"{problem.name}: infeasible: {solution.reason}")


def _candidates(solution: Solution, wanted: Sequence[str]) -> list[Candidate]:
    return [one for one in with_solution(solution) if one.name in wanted]


def _cells(solution: Solution, candidate: Candidate | None) -> tuple[str, str]:
    problem = solution.problem
    if candidate is None or candidate.metrics is None:
        return "–", ""
    value = candidate.metrics.value_ticks(problem.objective)
    text = time_text(problem, value).removesuffix(problem.time_unit).strip()
    if candidate.fits:
        return text, percent(gap(value, solution.lower_bound_ticks))
    return f"{text}\ndoes not fit: {_needed(solution.problem, candidate.metrics)}", "–"


def _needed(problem: Problem, metrics: Metrics) -> str:
    """Return the memory need and capacity of the device that lacks most; of a host if every device has enough."""
    over = [
        (peak - room, d)
        for d, (peak, room) in enumerate(zip(metrics.peak_quanta, problem.room, strict=True))
        if room is not None and peak > room
    ]
    if not over:
        return "memory of a host"
    _, d = max(over)
    peak_memory, room = metrics.peak_quanta[d] + problem.static[d], (problem.room[d] or 0) + problem.static[d]
    return f"needs {peak_of(peak_memory * problem.resolution, room * problem.resolution)} {problem.memory_unit}"
