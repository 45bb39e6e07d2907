"""The table of schedules side by side, for `compare` and `solve`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from commands.shared import not_applicable as grouped
from commands.shared.console import console, width
from commands.shared.encoding import encodable
from commands.shared.output import idle_shown, memory_range, percent, times_shown
from commands.shared.output import time as time_text
from commands.shared.tables import Cell, Column, room_of_tables, spare, table
from pipesched.problem.formatting import size
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import Ticks
from pipesched.results.candidate import Candidate
from pipesched.results.comparison import OURS
from pipesched.results.gap import gap
from pipesched.schedule.metrics import BUBBLE, IDLE, Metrics


def show(
    problem: Problem,
    candidates: Sequence[Candidate],
    lower_bound: Ticks,
    bars: bool | None = None,
    why_not: bool = True,
) -> None:
    """Print the table of schedules, then how many published schedules do not apply.

    With `why_not`, those that do not apply or do not fit the memory are listed with their reasons. `lower_bound` is in
    ticks. `bars` adds a bar for each schedule's time; None adds them if the width of the output is known.
    """
    found = [(one, one.metrics) for one in candidates if one.metrics is not None]
    rows: list[list[Cell]] = [_row(problem, one, metrics, lower_bound) for one, metrics in found]
    columns = _columns(problem)
    if width() is not None if bars is None else bars:
        lengths = [bar_of(metrics, problem.objective, lower_bound) for _, metrics in found]
        bars = _with_bars(columns, rows, lengths)
    ours = [number for number, (one, _) in enumerate(found) if one.name == OURS]
    bound = time_text(problem, lower_bound)
    title = f"{problem.name}: {size(problem)} · minimise {problem.objective.name} · lower bound {bound}"
    if rows:
        table(title, columns, rows, ours)
    if bars:
        show_legend()
    shown = [*grouped.lines_of_memory(candidates), *grouped.lines(candidates)] if why_not else grouped.count(candidates)
    for line in (*extended_lines(candidates), *shown):
        print(line)


def extended_lines(candidates: Sequence[Candidate]) -> list[str]:
    """Return lines naming the schedules whose figures were extended from fewer micro-batches.

    Empty if there are none.
    """
    fewer: dict[int, list[str]] = {}
    for one in candidates:
        if one.extended_from is not None:
            fewer.setdefault(one.extended_from, []).append(one.name)
    return [
        f"extended from {few} micro-batches, after which every round takes as long: {', '.join(names)}"
        for few, names in sorted(fewer.items())
    ]


def _columns(problem: Problem) -> list[Column]:
    unit = f"\n({problem.time_unit})" if problem.time_unit else ""
    aim = problem.objective
    return [
        Column("schedule"),
        *(Column(f"{time}{unit}", True, 0 if time is aim else 4) for time in times_shown(problem)),
        Column(IDLE, True, 3),
        Column(BUBBLE, True, 5),
        Column(f"peak memory\n({problem.memory_unit})", True, 1),
        Column("fits"),
        Column(f"gap to bound\n(of {aim.name})", True),
    ]


def _row(problem: Problem, candidate: Candidate, metrics: Metrics, lower_bound: Ticks) -> list[Cell]:
    value = metrics.value_ticks(problem.objective)
    values = [time_text(problem, metrics.value_ticks(time)) for time in times_shown(problem)]
    times = [text.removesuffix(problem.time_unit).strip() for text in values]
    excess = percent(gap(value, lower_bound)) if candidate.fits else "–"
    shares = [percent(share) for _, share in idle_shown(problem, metrics)]
    fits = "yes" if candidate.fits else "no"
    return [candidate.name, *times, *shares, memory_range(metrics), fits, excess]


def _with_bars(columns: list[Column], rows: list[list[Cell]], lengths: Sequence[Bar]) -> bool:
    """Add a column of bars as wide as there is room, in place.

    Returns False if there are no rows, or no room for the shortest. `lengths` has the bar of each row.
    """
    wider = [*columns, Column(f"{'time':<{LEAST}}", False, 2)]
    more = spare(wider, [[*row, "█" * LEAST] for row in rows], room_of_tables(), len(columns))
    if more is None or not rows:
        return False
    columns[:] = wider
    for row, bar in zip(rows, drawn(lengths, min(MOST, LEAST + more)), strict=True):
        row.append(bar)
    return True


LEAST, MOST = 10, 28  # columns of the longest bar
# Each part differs by its character too, where there is no colour or none that the reader sees.
PARTS = (
    ("█", "green", "work of the busiest device"),
    ("░", "yellow", "its idle time up to the bound"),
    ("▓", "bright_red", "above the bound"),
)


class Bar(NamedTuple):
    """The ends of the parts of a schedule's bar, in ticks: work of the busiest device, lower bound, and value."""

    work: float
    bound: float
    value: float


def bar_of(metrics: Metrics, objective: Objective, bound: Ticks) -> Bar:
    """Return the bar of one schedule: its value, split at the busiest device's work and at the lower bound.

    The bar of a schedule that breaks the memory limit, and is below the bound, ends at its value.
    """
    value = float(metrics.value_ticks(objective))
    work = value * (1 - (metrics.bubble(objective) or 0.0))
    return Bar(work, max(work, min(value, float(bound))), value)


def drawn(bars: Sequence[Bar], columns: int) -> list[Cell]:
    """Return the bars drawn to scale, one a cell in the given order, the longest with `columns` characters."""
    longest = max((bar.value for bar in bars), default=0.0) or 1.0
    return [_drawn(bar, columns / longest) for bar in bars]


def _drawn(bar: Bar, scale: float) -> Text:
    text, at = Text(), 0
    for end, (character, colour, _) in zip(bar, PARTS, strict=True):
        until = round(end * scale)
        text.append(encodable(character) * (until - at), colour)
        at = until
    return text


def show_legend() -> None:
    """Print the legend of the parts of the bars."""
    entries = [Text.assemble((encodable(character), colour), f" {name}") for character, colour, name in PARTS]
    console().print(Text("  ").join(entries), soft_wrap=True)
