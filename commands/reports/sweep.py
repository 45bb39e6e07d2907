"""Report of `sweep`: progress with the time left, a row for each cell, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from commands.shared.output import percent
from commands.shared.tables import Column, table
from pipesched.problem.formatting import counted, plain
from pipesched.schedule.metrics import BUBBLE, IDLE
from pipesched.sweeps.table import Row, State, Table
from pipesched.sweeps.values import as_number, label
from solver.sweeps.run_sweep import Moment

_MOST_REASONS = 8  # under the table; results.csv has all


def progress_text(moment: Moment) -> str:
    """Return a progress line of a sweep: the cell that ended last, and the estimated time for the remaining ones."""
    parts = [f"{moment.seconds:6.1f} s  {moment.done} of {counted(moment.cells, 'cell')} done"]
    if moment.running:
        parts.append(f"{moment.running} running")
    if moment.left is not None and moment.done < moment.cells:
        parts.append(f"about {_duration(moment.left)} left")
    line = ", ".join(parts)
    if moment.last is None:
        return line
    last = moment.last
    return f"{line}  ({place(last)}: {_verdict(last)})"


def show(found: Table) -> None:
    """Print a row for each cell, then why cells have no schedule, the counts of states, and the comparison of cells."""
    axes = found.sweep.axes.axes
    title = f"{found.sweep.name}: {counted(len(found.rows), 'cell')} of {' × '.join(axis.name for axis in axes)}"
    table(title, columns(found), rows(found))
    for line in reasons(found):
        print(line)
    print(f"{counts(found)}; {found.solved} solved now, {found.read} known before")
    for line in compared(found):
        print(line)


def compared(found: Table) -> Iterator[str]:
    """Yield sentences on the cell of least value, and on how much longer the others take.

    Only for sweeps of one batch. Where free memory is maximised before the time, the cells that leave the most are
    compared.
    """
    above = found.above_least
    if not found.sweep.of_batch:
        return
    leaving = [row for row in found.rows if row.free is not None]
    if len(leaving) > 1:
        yield f"most free memory: {_number(max(row.free or Fraction(0) for row in leaving))} at " + " and ".join(
            place(row) for row in leaving if row.cell.number in above
        )
    if len(above) < 2:
        return
    rows = sorted((row for row in found.rows if row.cell.number in above), key=lambda row: above[row.cell.number])
    least, *others = rows
    yield f"least {least.objective}: {_number(least.value)} at {place(least)}; above it: " + ", ".join(
        f"{place(row)} {percent(float(above[row.cell.number]))}" for row in others
    )


def columns(found: Table) -> list[Column]:
    """Return the table's columns: number of the cell, the fields that differ between cells, and the results.

    These are value, bound, gap, idle time, bubble rate, peak memory, the best published schedule with the ratio of its
    value, and the status; free memory where it is maximised, and what is above the least for cells of one batch.
    """
    axes = found.sweep.axes.axes
    objectives = {row.objective for row in found.rows} - {""}
    name = objectives.pop() if len(objectives) == 1 else "objective"
    unit = f"\n({found.time_unit})" if found.time_unit else ""
    made = [Column("cell", True, 1)]
    made += [Column(axis.name, _numeric(found, axis.name)) for axis in axes]
    made += [Column(f"best {name}{unit}", True), Column(f"lower bound{unit}", True, 5), Column("gap to bound", True)]
    made += [Column(IDLE, True, 6), Column(BUBBLE, True, 7), Column(f"peak memory\n({found.memory_unit})", True, 4)]
    made += [Column(f"free memory\n({found.memory_unit})", True)] * _leaves(found)
    made += [Column("best published", False, 2), Column("its time\n/ best", True, 3)]
    if found.sweep.of_batch:
        made += [Column("above\nleast", True)]
    made += [Column("status", False, 1)]
    return made


def rows(found: Table) -> list[list[str]]:
    """Return a table row (texts of the columns in `columns`) for each cell."""
    above = found.above_least
    free = _leaves(found)
    return [_cells(row, [percent(_share(above, row))] if found.sweep.of_batch else [], free) for row in found.rows]


def place(row: Row) -> str:
    """Return the values that define a row's cell as text, such as `memory.capacity 8, placement v-shape`."""
    return ", ".join(f"{name} {_shown(value)}" for name, value in row.cell.at)


def _share(above: Mapping[int, Fraction], row: Row) -> float | None:
    own = above.get(row.cell.number)
    return None if own is None else float(own)


def _leaves(found: Table) -> bool:
    """Return True if some cell has free memory as its objective."""
    return any(row.outcome is not None and row.outcome.free is not None for row in found.rows)


def _cells(row: Row, above: list[str], free: bool) -> list[str]:
    known, best = row.outcome, row.best_published
    texts = [str(row.cell.number), *(_shown(value) for _, value in row.cell.at)]
    texts += [_number(row.value), _number(row.lower_bound), percent(None if known is None else known.gap)]
    bubble = None if known is None or known.bubble is None else known.bubble.get(row.objective)
    texts += [percent(None if known is None else known.idle(row.objective)), percent(bubble)]
    texts += [_number(max(known.peak_memory)) if known and known.peak_memory else ""]
    texts += [_number(known.free.value) if known and known.free else ""] * free
    texts += ["" if best is None else best.name, "" if row.ratio is None else f"{float(row.ratio):.3f}"]
    return [*texts, *above, row.state.value]


def reasons(found: Table) -> list[str]:
    """Return why cells have no schedule, those of one reason in one line.

    After the first few there is one line with the number of the others.
    """
    cells_by_reason: dict[tuple[str, str], list[str]] = {}
    for row in found.rows:
        if row.value is None and row.reason:
            cells_by_reason.setdefault((row.state.value, row.reason), []).append(str(row.cell.number))
    lines = [
        f"{state} (cell{'s' * (len(cells) > 1)} {', '.join(cells)}): {reason}"
        for (state, reason), cells in cells_by_reason.items()
    ]
    more = len(lines) - _MOST_REASONS
    return lines if more <= 0 else [*lines[:_MOST_REASONS], f"and {more} more reasons; results.csv and --json have all"]


def counts(found: Table) -> str:
    """Return the number of cells in each state, as text; states without cells are left out."""
    states = [(state, found.count(state)) for state in State]
    parts = [f"{number} {state.value}" for state, number in states if number]
    return f"{counted(len(found.rows), 'cell')}: {', '.join(parts)}"


def _verdict(row: Row) -> str:
    if row.value is None:
        return row.state.value
    gap = row.outcome.gap if row.outcome else None
    return "optimal" if row.state is State.OPTIMAL else f"gap {percent(gap)}"


def _numeric(found: Table, axis: str) -> bool:
    return all(as_number(row.cell.place[axis]) is not None for row in found.rows)


def _shown(value: object) -> str:
    number = as_number(value)
    return label(value) if number is None else plain(float(number))


def _number(value: Fraction | None) -> str:
    return "" if value is None else plain(float(value))


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
