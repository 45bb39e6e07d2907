"""A heat map of the best published schedule's time over the best found, by devices, micro-batches and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from pipesched.problem.formatting import plain
from pipesched.sweeps.axes import Axis
from pipesched.sweeps.table import Row, State, Table
from pipesched.sweeps.values import as_number, label
from plots.drawing.frame import Handle
from plots.render import Format, saved
from plots.sweeps.canvas import entitle, figure_of_panels, legend
from plots.sweeps.facets import MOST_PANELS, named, with_unit

_NONE, _NO_PUBLISHED = "#e3e3e3", "#f7f1dc"
# Text on a cell's colour: neither pure white nor black, which change with the page.
_ON_DARK, _ON_LIGHT = "#fefefe", "#1c1f23"
_LEAST_SCALE = 1.1


@dataclass(frozen=True)
class Scale:
    """One axis of the heat map: its name, and the function that gives a row's number on it, None if it has none."""

    name: str
    of: Callable[[Row], Fraction | None]


def render_ratio(found: Table, numeric: Sequence[Axis], format: Format = "png") -> bytes:
    """Return the picture of the best published value divided by the best found.

    It is a map over the axes `numeric` of a sweep, two or more. It has a panel for each value of the axes that are not
    axes of the map, up to `MOST_PANELS`. `format` is that of the bytes returned.
    """
    down, across, panel_scales = scales(found, numeric)
    rows_by_title: dict[str, list[Row]] = {}
    for row in found.rows:
        if not row.cell.refused:
            rows_by_title.setdefault(_title(row, found, numeric, panel_scales), []).append(row)
    shown = list(rows_by_title.items())[:MOST_PANELS]
    figure, grid = figure_of_panels([title for title, _ in shown])
    ratios = [float(row.ratio) for row in found.rows if row.ratio is not None]
    most = max([_LEAST_SCALE, *ratios])
    image = None
    for (_, rows), (axes,) in zip(shown, grid, strict=True):
        image = _draw(rows, down, across, axes, most)
    if image is not None:
        bar = figure.colorbar(image, ax=[column[0] for column in grid], shrink=0.85, pad=0.02)
        bar.set_label("best published ÷ best found")
    open_ones = any(row.ratio is not None and row.state is not State.OPTIMAL for row in found.rows)
    note = "≥ where the best found is not proved optimal: the true ratio is this or more" if open_ones else ""
    entitle(
        figure,
        f"{found.sweep.name}: how far published schedules are from the best",
        note or "all proved optimal",
        len(rows_by_title) - len(shown),
    )
    entries: list[tuple[Handle, str]] = []
    if any(row.value is not None and row.ratio is None for row in found.rows):
        entries.append((Patch(facecolor=_NO_PUBLISHED), "no published schedule fits"))
    if any(row.value is None for row in found.rows):
        entries.append((Patch(facecolor=_NONE), "no schedule"))
    if entries:
        legend(figure, entries)
    return saved(figure, format)


def scales(found: Table, numeric: Sequence[Axis]) -> tuple[Scale, Scale, list[Scale]]:
    """Return the map's vertical and horizontal axes, and those of panels.

    They are devices, micro-batches a device, and memory a device, if the sweep has these, then its other axes of
    numbers (`numeric`, two or more) in order. Without an axis of devices, micro-batches and memory are not divided.
    """
    by_path = {axis.path: axis for axis in numeric}
    devices = by_path.get("devices")
    axes_of_map = [axis for axis in numeric if axis is not devices]
    axes_of_map.sort(key=lambda axis: (axis.path != "microbatches", axis.path != "memory.capacity"))
    made = [_scale(axis, found, devices) for axis in axes_of_map]
    if devices is not None:
        made.insert(0, Scale("Devices p", _number_of(devices)))
    return made[0], made[1], made[2:]


def _scale(axis: Axis, found: Table, devices: Axis | None) -> Scale:
    number_of = _number_of(axis)
    if devices is None or axis.path not in ("microbatches", "memory.capacity"):
        return Scale(with_unit(axis, found), number_of)
    count = _number_of(devices)

    def share(row: Row) -> Fraction | None:
        number, of = number_of(row), count(row)
        return None if number is None or not of else number / of

    return Scale("Micro-batches m/p" if axis.path == "microbatches" else f"memory/p ({found.memory_unit})", share)


def _number_of(axis: Axis) -> Callable[[Row], Fraction | None]:
    return lambda row: as_number(row.cell.place[axis.name])


def _title(row: Row, found: Table, numeric: Sequence[Axis], panel_scales: Sequence[Scale]) -> str:
    words = [axis for axis in found.sweep.axes.axes if axis not in numeric]
    parts = [f"{named(axis)} {label(row.cell.place[axis.name])}" for axis in words]
    parts += [f"{scale.name} {plain(float(scale.of(row) or 0))}" for scale in panel_scales]
    return ", ".join(parts)


def _draw(rows: Sequence[Row], down: Scale, across: Scale, axes: Axes, most: float) -> AxesImage:
    ys = sorted({y for row in rows if (y := down.of(row)) is not None})
    xs = sorted({x for row in rows if (x := across.of(row)) is not None})
    shades = np.full((len(ys), len(xs)), np.nan)
    axes.set_facecolor(_NONE)
    for row in rows:
        y, x = down.of(row), across.of(row)
        if y is None or x is None:
            continue
        place = xs.index(x), ys.index(y)
        if row.ratio is not None:
            shades[place[1], place[0]] = float(row.ratio)
            text = f"{'' if row.state is State.OPTIMAL else '≥ '}{float(row.ratio):.3f}"
            dark = float(row.ratio) > 1 + 0.55 * (most - 1)
            axes.text(*place, text, ha="center", va="center", fontsize=7.5, color=_ON_DARK if dark else _ON_LIGHT)
        elif row.value is not None:
            axes.fill_between(
                [place[0] - 0.5, place[0] + 0.5], place[1] - 0.5, place[1] + 0.5, color=_NO_PUBLISHED, lw=0
            )
    image = axes.imshow(shades, cmap="YlOrRd", vmin=1, vmax=most, aspect="auto", origin="lower")
    axes.set_xticks(range(len(xs)), [plain(float(x)) for x in xs])
    axes.set_yticks(range(len(ys)), [plain(float(y)) for y in ys])
    axes.set_xlabel(across.name, parse_math=False)
    axes.set_ylabel(down.name, parse_math=False)
    axes.tick_params(length=0)
    return image
