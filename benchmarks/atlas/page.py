"""The generated part of docs/atlas.md, the maps, and the table that `solve` reads its cell from."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import fmean

from benchmarks.atlas.grid import DEVICES, LENGTHS, MEMORIES, RATIOS, TRANSFERS
from benchmarks.atlas.maps import draw
from benchmarks.atlas.row import IMPROVED, Row
from benchmarks.atlas.sentences import sentences, winners
from benchmarks.reporting.page import put, table
from commands.reports.solved.atlas import COLUMNS, TABLE
from pipesched.files.atomic_write import write_whole

COMMAND = "python -m benchmarks.atlas"
DOCS = Path(__file__).resolve().parents[2] / "docs"
HEAD = "published schedule", "cells in which it fits", "best there", "proved optimal", "mean excess, %"


def write_all(rows: Sequence[Row]) -> list[Path]:
    """Maps, page and packaged table; the files written."""
    files = []
    shown = [p for p in DEVICES if any(row.point.family.devices == p for row in rows)]
    for p in shown:
        image = draw([row for row in rows if row.point.family.devices == p], p)
        files.append(write_whole(DOCS / "images" / f"atlas-p{p}.png", image))
    put(DOCS / "atlas.md", COMMAND, text(rows, shown))
    files.append(DOCS / "atlas.md")
    files.append(write_whole(TABLE, packaged(rows)))
    return files


def text(rows: Sequence[Row], shown: Sequence[int]) -> str:
    """Number of cells, the sentences, the maps, and a table of the published schedules."""
    whole = len(DEVICES) * len(LENGTHS) * len(MEMORIES) * len(RATIOS) * len(TRANSFERS)
    counts = ", ".join(f"{sum(row.point.family.devices == p for row in rows)} of {p} devices" for p in shown)
    maps = [f"![Best published schedules on {p} devices](images/atlas-p{p}.png)" for p in shown]
    machines = "; ".join(sorted({row.made_by.partition("; commit ")[0] for row in rows}))
    seconds = sum(row.seconds for row in rows)
    return "\n\n".join(
        (
            f"{len(rows)} of {whole} cells are solved: {counts}.",
            "\n".join(f"{n}. {sentence}" for n, sentence in enumerate(sentences(rows), 1)),
            *maps,
            "## By schedule",
            table(HEAD, _lines(rows)),
            "## By search",
            f"The last search that changed a cell. Together these took {seconds:.0f} processor seconds. {machines}.",
            table(("search", "cells", "commits"), _searches(rows)),
        )
    )


def _lines(rows: Sequence[Row]) -> list[list[str]]:
    names = sorted({one.schedule for row in rows for one in row.fitting} - {*IMPROVED})
    lines = []
    for name in names:
        fits = [(row, one) for row in rows if (one := _of(row, name)) is not None]
        best = [row for row, _ in fits if name in winners(row)]
        optimal = sum(row.excess == 0 and row.proved for row in best)
        excess = fmean(one / (row.value or one) - 1 for row, one in fits)
        lines.append((len(best), [name, str(len(fits)), str(len(best)), str(optimal), f"{100 * excess:.1f}"]))
    return [line for _, line in sorted(lines, key=lambda each: (-each[0], each[1]))]


def _searches(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each search that rows name: what searched, its number of rows, and its commits.

    The whole engine is named by its units of counted work, parts of it by their names and seconds.
    """
    found = dict[str, list[str]]()
    for row in rows:
        commit, _, parts = row.made_by.partition("; commit ")[2].partition("; ")
        found.setdefault(parts or f"{row.units:g} units of counted work", []).append(commit)
    ordered = sorted(found.items(), key=lambda each: (-len(each[1]), each[0]))
    return [[searched, str(len(of)), ", ".join(sorted(set(of)))] for searched, of in ordered]


def _of(row: Row, name: str) -> int | None:
    """The value of a published schedule that fits, on the placement where it is best."""
    return min((one.value for one in row.fitting if one.schedule == name), default=None)


def packaged(rows: Sequence[Row]) -> str:
    """A line for each cell: best published schedule, its value, best value and lower bound of all placements."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in sorted(rows, key=lambda row: row.point):
        family, best = row.point.family, row.fitting[0] if row.fitting else None
        own = ("", "", "") if best is None else (best.schedule, best.placement, best.value)
        where = _number(row.point.memory), family.ratio, _number(family.transfer)
        found = "/".join(row.placements), row.value, row.lower_bound
        writer.writerow([family.devices, family.length, *where, *own, *found])
    return out.getvalue()


def _number(share: Fraction) -> str:
    return f"{float(share):g}"
