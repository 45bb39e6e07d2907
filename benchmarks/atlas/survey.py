"""The run of the atlas: point by point, each checked and stored before the next begins."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from benchmarks.atlas.grid import MEMORIES, Family, Point, families, points
from benchmarks.atlas.row import Placed, PublishedValue, Row, read_rows, write_rows
from benchmarks.atlas.settle import Effort, Settling
from benchmarks.reporting.page import machine
from commands.reports.checks.cell_check import check_cell
from pipesched.checking.finding import Verdict
from pipesched.errors import Disagreement
from pipesched.files.exact_numbers import write_json
from pipesched.sweeps.cells import Cell
from pipesched.sweeps.outcome import Outcome
from pipesched.sweeps.store import Store
from pipesched.sweeps.stored import StoredCell


def survey(
    devices: Sequence[int],
    memories: Collection[Fraction],
    effort: Effort,
    again: bool,
    path: Path,
    store: Path,
    say: Callable[[str], None],
) -> dict[Point, Row]:
    """Every point of these devices and memories that `path` does not have; with `again` open ones of less work too."""
    rows, made_by = read_rows(path), f"{machine(0, 1)}; commit {_commit()}"
    if effort.name:
        made_by += f"; {effort.name}"

    def to_search(point: Point) -> bool:
        return point.memory in memories and _open(rows, point, effort, again)

    wanted = [family for family in families(devices) if any(map(to_search, _of(family)))]
    with Store(store) as known:
        for family in wanted:
            sweep = family.sweep
            known.enter(sweep)
            settling = Settling(sweep.cells, known, effort)
            for point, cells in points(family, sweep):
                if not to_search(point):
                    continue
                began = time.process_time()
                settling.settle(cells, published=point not in rows)
                for each, own in points(family, sweep):
                    if each == point or (_was_open(rows, each) and _has(own, settling.known)):
                        seconds = time.process_time() - began if each == point else rows[each].seconds
                        counted = effort.counted and (each == point or each not in rows)
                        work = rows[each].units if each in rows else 0.0
                        if counted and effort.units is not None:
                            work = effort.units
                        placed = _placed(own, settling.known)
                        if each in rows:  # perhaps of another store
                            placed = {name: one.with_known(rows[each].placed[name]) for name, one in placed.items()}
                        rows[each] = Row(each, placed, work, seconds, made_by)
                write_rows(path, rows.values())
                say(row_text(rows[point], len(rows)))
    return rows


def _open(rows: Mapping[Point, Row], point: Point, effort: Effort, again: bool) -> bool:
    row = rows.get(point)
    more = effort.units is None or bool(effort.only) or (row is not None and row.units < effort.units)
    return row is None or (again and not row.proved and more)


def _was_open(rows: Mapping[Point, Row], point: Point) -> bool:
    """Has a row without a proof, which what was found with other memory of the family may give."""
    return point in rows and not rows[point].proved


def _has(cells: Mapping[str, Cell], known: Mapping[str, Outcome]) -> bool:
    """The store has them all: rows may stem from another store."""
    return all(cell.key in known for cell in cells.values())


def _of(family: Family) -> list[Point]:
    return [Point(family, memory) for memory in MEMORIES]


def row_text(row: Row, number: int) -> str:
    """A point in one line."""
    best = row.fitting[0] if row.fitting else None
    published = "no published schedule fits" if best is None else f"{best.schedule} on {best.placement} {best.value}"
    state = "optimal" if row.proved else f"none below {row.lower_bound}"
    found = f"{row.value} on {', '.join(row.placements)}, {state}; {published}"
    return f"{number}: {row.point.key}: {found}; {row.seconds:.1f} s"


def _placed(cells: Mapping[str, Cell], known: Mapping[str, Outcome]) -> dict[str, Placed]:
    return {name: _one(cell, known[cell.key]) for name, cell in cells.items()}


def _one(cell: Cell, known: Outcome) -> Placed:
    """The outcome of a cell as `check` verifies it; `Disagreement` where it refuses the schedule or the bound."""
    stored = StoredCell(cell.name, cell.number, cell.place, cell.key, "", write_json(cell.document), known)
    found = check_cell(stored)
    if not found.holds:
        raise Disagreement(f"{cell.name}, cell {cell.number}: {'; '.join(found.wrong) or found.findings[0].text}")
    counts = found.verdict in (Verdict.VERIFIED, Verdict.TRUSTED)
    published = {
        one.name: PublishedValue(int(one.value), int(one.memory or 0), one.fits)
        for one in known.published
        if one.value is not None
    }
    return Placed(
        None if known.value is None else int(known.value),
        int(known.lower_bound) if counts and known.lower_bound is not None else None,
        known.kind if counts else "",
        "" if found.verdict is None else found.verdict.value,
        published,
    )


def _commit() -> str:
    """The commit of this checkout; `unknown` outside of one."""
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
