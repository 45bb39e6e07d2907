"""The picture of time against memory: the best found, the bound proved, and between them what is open."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from pipesched.amounts import plain
from plots.frame import Handle, figure_of, legend_below
from plots.picture import DPI, MARGIN, Format

FOUND, PROVED, OPEN, OTHER, OWN = "#2f5f91", "#c0392b", "#f1d9d5", "#5f5f5f", "#8a6d00"
SIZE = (9.0, 5.6)  # inches
PAD = 0.06  # of the range, beyond the outermost points
LOGARITHMIC = 4  # an axis whose numbers differ by more than this factor is logarithmic


class Spot(NamedTuple):
    """The best found with so much memory, in the units of the axes."""

    memory: float
    value: float


class Known(NamedTuple):
    """A published schedule: the memory it takes and its value."""

    name: str
    memory: float
    value: float


def render_frontier(
    spots: Sequence[Spot],
    bounds: Sequence[tuple[float, float]],
    known: Sequence[Known],
    own: float | None,
    labels: tuple[str, str],
    title: str,
    format: Format = "png",
) -> bytes:
    """The image; the same points give the same bytes. `labels` name memory and value with their units."""
    figure = Figure(figsize=SIZE, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN))
    axes = figure.add_subplot()
    axes.set_xlabel(labels[0], parse_math=False)
    axes.set_ylabel(labels[1], parse_math=False)
    axes.set_title(title, loc="left", fontsize=11, parse_math=False)
    draw_frontier(spots, bounds, known, own, axes)
    buffer = io.BytesIO()
    # Matplotlib reads these two only from its settings; the context puts them back. Text stays text in the SVG.
    with mpl.rc_context({"svg.hashsalt": "pipesched", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=format, dpi=DPI, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


def draw_frontier(
    spots: Sequence[Spot],
    bounds: Sequence[tuple[float, float]],
    known: Sequence[Known],
    own: float | None,
    axes: Axes,
) -> None:
    """Steps by rising memory: a schedule found needs its memory and is there with more, a bound holds with less.

    `bounds` are (memory, bound), each from the memory of the one before; `own` is the capacity in the problem file, a
    line of its own.
    """
    places = [*((spot.memory, spot.value) for spot in spots), *((one.memory, one.value) for one in known)]
    _scale(axes, "x", [memory for memory, _ in places] + ([] if own is None else [own]))
    _scale(axes, "y", [value for _, value in (*places, *bounds)])
    right = axes.get_xlim()[1]
    entries: list[tuple[Handle, str]] = [
        (Line2D([], [], color=FOUND, marker="o", markersize=5), "Best found"),
        (Line2D([], [], color=PROVED, linewidth=1.2), "No schedule is below"),
        (Patch(facecolor=OPEN), "Open: between the two"),
    ]
    upper = [*spots, Spot(right, spots[-1].value)]
    lower = [*bounds, (right, bounds[-1][1])]
    _fill(upper, lower, axes)
    axes.step(*zip(*upper, strict=True), where="post", color=FOUND, linewidth=1.8)
    axes.plot(*zip(*spots, strict=True), "o", color=FOUND, markersize=5)
    axes.step(*zip(*lower, strict=True), where="pre", color=PROVED, linewidth=1.2)
    if own is not None:
        axes.axvline(own, color=OWN, linewidth=1.0, linestyle=(0, (4, 3)))
        entries.append((Line2D([], [], color=OWN, linewidth=1.0, linestyle=(0, (4, 3))), "Capacity in the file"))
    if known:
        axes.plot([k.memory for k in known], [k.value for k in known], "D", color=OTHER, markersize=4)
        entries.append((Line2D([], [], linestyle="", marker="D", color=OTHER, markersize=4), "Published schedules"))
    axes.spines[["top", "right"]].set_visible(False)
    legend_below(axes, entries)
    _name(known, axes)


def _fill(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], axes: Axes) -> None:
    """The area between the two steps, cut where either has a corner: one holds to the right, the other to the left."""
    corners = sorted({memory for memory, _ in (*upper, *lower) if memory >= upper[0][0]})
    for left, right in pairwise(corners):
        value = [v for memory, v in upper if memory <= left][-1]
        bound = next(v for memory, v in lower if memory >= right)
        if bound < value:
            axes.fill_between([left, right], bound, value, color=OPEN, linewidth=0)


def _scale(axes: Axes, name: Literal["x", "y"], numbers: Sequence[float]) -> None:
    """Limits a little beyond the numbers; logarithmic where they differ by much, with plain tick labels."""
    least, most = min(numbers), max(numbers)
    axis = axes.xaxis if name == "x" else axes.yaxis
    if least > 0 and most > LOGARITHMIC * least:
        pad = (most / least) ** PAD
        axes.set(**{f"{name}scale": "log", f"{name}lim": (least / pad, most * pad)})
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_minor_formatter(NullFormatter())
    else:
        pad = PAD * ((most - least) or most or 1)
        axes.set(**{f"{name}lim": (least - pad, most + pad)})
    axis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))


def _name(known: Sequence[Known], axes: Axes) -> None:
    """Names beside the marks, those of one place together; where no side is free, the mark stays without."""
    figure_of(axes).draw_without_rendering()  # the layout decides where things are, and so what is free
    places: dict[tuple[float, float], list[str]] = {}
    for one in known:
        places.setdefault((one.memory, one.value), []).append(one.name)
    marks = [axes.transData.transform(at) for at in places]
    taken = [Bbox.from_extents(x - 5, y - 5, x + 5, y + 5) for x, y in marks]
    for line in axes.get_lines():
        if line.get_linestyle() == "None":  # marks alone
            continue
        # Vertices of the path as drawn: a step has a corner for each change, so its pieces are level or upright.
        corners = np.asarray(line.get_transform().transform_path(line.get_path()).vertices)
        taken += [Bbox(np.stack(ends)).padded(2) for ends in pairwise(corners)]
    room = axes.get_window_extent()
    for place, names in sorted(places.items(), key=lambda item: item[0][1]):
        for offset, horizontal, vertical in _SIDES:
            note = axes.annotate(
                ", ".join(names), place, offset, textcoords="offset points", fontsize=7.5, color=OTHER,
                ha=horizontal, va=vertical, annotation_clip=False, parse_math=False,
            )  # fmt: skip
            if _is_free(note, taken, room):
                taken.append(note.get_window_extent())
                break
            note.remove()


_SIDES = (
    ((6, 0), "left", "center"),
    ((5, 6), "left", "bottom"),
    ((5, -6), "left", "top"),
    ((-6, 0), "right", "center"),
    ((0, 7), "center", "bottom"),
    ((0, -7), "center", "top"),
)


def _is_free(note: Annotation, taken: Sequence[Bbox], room: Bbox) -> bool:
    box = note.get_window_extent()
    inside = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
    return inside and not any(box.overlaps(other) for other in taken)
