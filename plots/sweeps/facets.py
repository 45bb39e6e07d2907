"""Division of a sweep's rows into panels and series.

One axis is along x, one by colour, and there is a panel for each combination of the others' values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from matplotlib import colormaps
from matplotlib.colors import to_hex

from pipesched.problem.formatting import plain
from pipesched.sweeps.axes import Axis
from pipesched.sweeps.table import Row, Table
from pipesched.sweeps.values import as_number, label

MOST_PANELS = 6
# Okabe and Ito's colours, which also those tell apart who see few; darker where they were too light for a line.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#aa3377", "#56a0d9", "#a87900", "#5f5f5f", "#222222")
_SHORT = {
    "memory.capacity": "memory",
    "hardware.memory": "memory",
    "times.transfer": "transfer",
    "microbatches": "micro-batches",
}


@dataclass(frozen=True)
class Series:
    """The rows of a sweep that are drawn in one colour, each as (x, row), by rising x."""

    name: str
    colour: str
    rows: tuple[tuple[Fraction, Row], ...]


@dataclass(frozen=True)
class Panel:
    """The series drawn on one pair of axes; `title` has the values that they share, and is empty if there are none."""

    title: str
    series: tuple[Series, ...]


def numbers_of(axis: Axis, found: Table) -> list[Fraction] | None:
    """Return the numbers of an axis in the cells, rising; None if a value is no number, or there is only one."""
    numbers = {as_number(row.cell.place[axis.name]) for row in found.rows}
    known = sorted(number for number in numbers if number is not None)
    return known if len(known) == len(numbers) and len(known) > 1 else None


def panels(found: Table, x: Axis) -> list[Panel]:
    """Return one panel for each combination of values on the axes that are neither `x` nor drawn as series.

    They are in the order of the cells, and at most `MOST_PANELS`.
    """
    others = [axis for axis in found.sweep.axes.axes if axis is not x]
    series_axis = _series_axis(found, others)
    panel_axes = [axis for axis in others if axis is not series_axis]
    rows_by_panel: dict[tuple[str, ...], list[Row]] = {}
    for row in found.rows:
        rows_by_panel.setdefault(tuple(_panel_name(row, axis) for axis in panel_axes), []).append(row)
    shown = list(rows_by_panel.items())[:MOST_PANELS]
    return [Panel(", ".join(names), _series(found, rows, series_axis, x)) for names, rows in shown]


def left_out(found: Table, x: Axis) -> int:
    """Return the number of panels that are not drawn, those beyond `MOST_PANELS`."""
    others = [axis for axis in found.sweep.axes.axes if axis is not x]
    series_axis = _series_axis(found, others)
    return max(
        0, len({tuple(_panel_name(r, a) for a in others if a is not series_axis) for r in found.rows}) - MOST_PANELS
    )


def colours(number: int) -> list[str]:
    """Return `number` different colours; shades of one scale if there are many."""
    if number <= len(_COLOURS):
        return list(_COLOURS[:number])
    scale = colormaps["viridis"]
    return [to_hex(scale(0.35 + 0.5 * n / (number - 1))) for n in range(number)]


def named(axis: Axis) -> str:
    """Return the name of an axis in pictures."""
    return _SHORT.get(axis.path, axis.name)


def with_unit(axis: Axis, found: Table) -> str:
    """Return the name of an axis, with a capital, and the file's unit in brackets if it has one, as a label."""
    unit = found.memory_unit if axis.path.startswith(("memory.", "hardware.memory")) else ""
    unit = found.time_unit if axis.path.startswith(("times.", "transfer")) else unit
    name = named(axis)
    return f"{name[0].upper()}{name[1:]}" + (f" ({unit})" if unit else "")


def _series_axis(found: Table, others: Sequence[Axis]) -> Axis | None:
    """Return the axis whose values are drawn as series: the first one whose values are words, else the first one.

    Never the objective, whose values differ in kind; None if there is no other axis.
    """
    free = [axis for axis in others if axis.path != "objective"]
    words = [axis for axis in free if numbers_of(axis, found) is None]
    return next(iter([*words, *free]), None)


def _series(found: Table, rows: Sequence[Row], series_axis: Axis | None, x: Axis) -> tuple[Series, ...]:
    names = list(dict.fromkeys(_value(row, series_axis) for row in found.rows))
    made = []
    for name, colour in zip(names, colours(len(names)), strict=True):
        mine = [
            (as_number(row.cell.place[x.name]) or Fraction(0), row) for row in rows if _value(row, series_axis) == name
        ]
        solved = any(row.value is not None for row in found.rows if _value(row, series_axis) == name)
        label_of_series = name if solved else f"{name}: no schedule"
        made.append(Series(label_of_series, colour, tuple(sorted(mine, key=lambda one: one[0]))))
    return tuple(made)


def _value(row: Row, axis: Axis | None) -> str:
    if axis is None:
        return "best found"
    value = row.cell.place[axis.name]
    number = as_number(value)
    return label(value) if number is None else f"{named(axis)} {plain(float(number))}"


def _panel_name(row: Row, axis: Axis) -> str:
    value = row.cell.place[axis.name]
    number = as_number(value)
    return f"{named(axis)} {label(value) if number is None else plain(float(number))}"
