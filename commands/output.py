"""What a person sees: tables and files on standard output, complaints and progress on standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import simplejson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipesched.amounts import amount, plain
from pipesched.metrics import Metrics
from pipesched.problem import Objective, Problem

# Tables keep the width they need where output is no terminal, or a narrow one: a number cut short would mislead.
_WIDE = 160
_NARROW = 110


def console(stderr: bool = False) -> Console:
    """A console for standard output or standard error."""
    stream = sys.stderr if stderr else sys.stdout
    if not stream.isatty():
        return Console(file=stream, width=_WIDE, highlight=False)
    terminal = Console(file=stream, highlight=False)
    return terminal if terminal.width >= _NARROW else Console(file=stream, highlight=False, width=_NARROW)


def complain(line: str) -> None:
    """One line of error on standard error, never wrapped or coloured."""
    print(f"pipesched: {line}", file=sys.stderr)


def note(line: str) -> None:
    """One line for the person, beside the result."""
    print(line, file=sys.stderr)


def write_json(document: object) -> None:
    """The one object of a `--json` run."""
    print(simplejson.dumps(document, ignore_nan=True, indent=1))


def table(
    title: str, columns: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]], bold: Sequence[int] = ()
) -> None:
    """Print a table; a column is (header, is a number). Rows whose index is in `bold` stand out."""
    made = Table(title=Text(title), title_justify="left", title_style="bold", header_style="bold")
    for header, numeric in columns:
        made.add_column(header, justify="right" if numeric else "left", no_wrap=numeric)
    for index, row in enumerate(rows):
        made.add_row(*map(Text, row), style="bold" if index in bold else None)
    console().print(made)


def files_written(paths: Sequence[Path]) -> None:
    """Name the files a command wrote."""
    if paths:
        print("wrote " + "\n      ".join(map(str, paths)))


def times_shown(problem: Problem) -> tuple[Objective, ...]:
    """The times of a schedule that tables show: the period where it is asked for, as no timeline alone tells it."""
    ends = (Objective.MAKESPAN, Objective.SPAN)
    return (Objective.PERIOD, *ends) if problem.objective is Objective.PERIOD else ends


def bubbles_shown(problem: Problem) -> tuple[Objective, ...]:
    """The bubble rates that tables show: of a steady state, or of the run from end to end."""
    return tuple(o for o in times_shown(problem) if (o is Objective.PERIOD) == (problem.objective is Objective.PERIOD))


def rate(value: float | None) -> str:
    """A bubble rate or gap as the papers print it."""
    return "" if value is None else f"{value:.4f}"


def time(problem: Problem, ticks: int | None) -> str:
    """Ticks with the file's unit; nothing for None."""
    return "" if ticks is None else amount(problem, ticks)


def in_file_units(problem: Problem, ticks: int | None) -> float | None:
    """Ticks as a JSON number in the file's unit."""
    return None if ticks is None else problem.in_units(ticks)


def memory_amounts(problem: Problem, metrics: Metrics) -> list[float]:
    """Peak memory of each device in the file's unit."""
    return [float(level * problem.memory.resolution) for level in metrics.peak_memory]


def memory_range(problem: Problem, metrics: Metrics) -> str:
    """Peak memory over the devices, in short: one value, or least to most."""
    amounts = memory_amounts(problem, metrics)
    least, most = min(amounts), max(amounts)
    return plain(most) if least == most else f"{plain(least)} – {plain(most)}"
