"""The table of schedules side by side, as people read it: shared by `compare` and `solve`."""

from __future__ import annotations

from collections.abc import Sequence

from commands.shared import not_applicable as grouped
from commands.shared.output import bubbles_shown, memory_range, percent, times_shown
from commands.shared.output import time as time_text
from commands.shared.tables import Column, table
from pipesched.problem.formatting import size
from pipesched.problem.problem import Problem
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS
from pipesched.results.gap import gap


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
        metrics = candidate.metrics
        if metrics is None:
            continue
        value = metrics.value(aim)
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
