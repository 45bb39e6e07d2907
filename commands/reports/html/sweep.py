"""The HTML report of a sweep: verdict, pictures, a row for each cell, schedules, input file, reproduction."""

from __future__ import annotations

from argparse import Namespace

from commands.reports.html.origin import file_section, reproduce_section
from commands.reports.sweep import columns, counts, place, reasons, rows
from commands.shared.output import percent
from pipesched.problem.formatting import plain
from pipesched.schedule.timeline import Timeline
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.table import Row, Table
from plots.html import parts
from plots.html.parts import Paragraph, Part, Picture, Points, Schedules, Section
from plots.html.report import report
from plots.sweeps.pictures import pictures

_MOST = 24  # schedules that can be looked at; results.csv has all cells, and `--write` their schedules
_SHOWS = {"memory": "Time against memory", "bubble": "Idle time", "makespan-span": "Makespan against span"}
_SHOWS |= {"ratio": "The best published schedule to the best found"}


def sweep_report(found: Table, seconds: float, args: Namespace, text: str | None) -> str:
    """Return the HTML page of a sweep that took `seconds`; `text` is the input file (None: it cannot be read again)."""
    axes = " × ".join(axis.name for axis in found.sweep.axes.axes)
    cells = parts.Table(
        [(one.header.replace("\n", " "), one.numeric) for one in columns(found)], rows(found), counts(found)
    )
    sections = [
        Section("Cells", [cells, *([Points(reasons(found))] if reasons(found) else [])]),
        *_pictures(found),
        *_schedules(found),
        file_section("The file", text, args.file),
        reproduce_section(args, seconds),
    ]
    return report(found.sweep.name, f"A sweep of {axes}", verdict(found), sections)


def verdict(found: Table) -> str:
    """Return the verdict: the number of cells in each state, the cell of least value, and the widest gap, if any.

    Without any schedule it says so in place of the last two.
    """
    known = [row for row in found.rows if row.value is not None]
    settled = f"{counts(found)}."
    if not known:
        return f"{settled} No cell has a schedule."
    best = min(known, key=lambda row: row.value or 0)
    value = f"{best.objective} {plain(float(best.value or 0))} {found.time_unit}".rstrip()
    gap = max((row.outcome.gap or 0.0 for row in known if row.outcome is not None), default=0.0)
    widest = f" The widest gap is {percent(gap)}." if gap else ""
    return f"{settled} The least: {value}, at {place(best)}.{widest}"


def _pictures(found: Table) -> list[Section]:
    made: list[Part] = []
    for name, image in pictures(found, "svg").items():
        stem = name.removesuffix(".svg")
        shows = next((text for start, text in _SHOWS.items() if stem.startswith(start)), stem)
        made += [Paragraph(shows + ":"), Picture(image, f"{shows}, for the cells of the table above")]
    return [Section("Pictures", made)] if made else []


def _schedules(found: Table) -> list[Section]:
    """Return sections with the best schedules of the cells, in order; of many cells only those of least value."""
    known = [row for row in found.rows if row.outcome is not None and row.outcome.schedule is not None]
    if not known:
        return []
    shown = sorted(sorted(known, key=lambda row: row.value or 0)[:_MOST], key=lambda row: row.cell.number)
    more = len(known) - len(shown)
    caption = [Paragraph(f"The {_MOST} of the least values; `sweep --write CELL` writes any other.")] if more else []
    timelines = [(f"cell {row.cell.number}: {place(row)}", _timeline(row)) for row in shown]
    return [Section("Passes and memory", [*caption, Schedules(timelines)])]


def _timeline(row: Row) -> Timeline:
    assert row.outcome is not None
    assert row.outcome.schedule is not None
    return unpack(row.outcome.schedule).timeline
