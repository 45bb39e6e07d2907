"""The plot of the Pareto frontier of time against memory: best values found, lower bounds, and the gap between them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pipesched.problem.formatting import plain, size
from pipesched.results.analysis.frontier import Frontier
from plots.drawing.frame import Handle, legend_under_axis
from plots.drawing.labels import label
from plots.render import Format, paper, saved

FOUND, PROVED, OPEN, OTHER, OWN = "#2f5f91", "#c0392b", "#f1d9d5", "#5f5f5f", "#8a6d00"
SIZE = (9.0, 5.6)  # inches
PAD = 0.06  # of the range, beyond the outermost points
LOGARITHMIC = 4  # an axis whose numbers differ by more than this factor is logarithmic


class Spot(NamedTuple):
    """The best value found with an amount of memory, in the units of the axes."""

    memory: float
    value: float


class Known(NamedTuple):
    """A published schedule: its memory and its value, in the units of the axes."""

    name: str
    memory: float
    value: float


def render_frontier(found: Frontier, format: Format = "png") -> bytes:
    """Return the image of a frontier with a value at some point; the same frontier gives the same bytes."""
    problem = found.problem
    figure = paper(*SIZE)
    axes = figure.add_subplot()
    name = problem.objective.name
    unit = f" ({problem.time_unit})" if problem.time_unit else ""
    axes.set_xlabel(_memory_label(found), parse_math=False)
    axes.set_ylabel(name.capitalize() + unit, parse_math=False)
    axes.set_title(f"{problem.name}: {name} against memory\n{size(problem)}", loc="left", fontsize=11, parse_math=False)
    _draw_all(found, axes)
    return saved(figure, format)


def _memory_label(found: Frontier) -> str:
    problem, unit = found.problem, found.problem.memory_unit
    memory = "Activation memory" if any(problem.static) else "Memory"
    return f"{memory}, % of each device's capacity" if found.scale.by_share else f"{memory} of a device ({unit})"


def _draw_all(found: Frontier, axes: Axes) -> None:
    """Draw all points of the frontier in the units of the axes: the file's, or per cent of each capacity."""
    scale = found.scale

    def memory(level: Fraction) -> float:
        return float(100 * level if scale.by_share else level)

    spots = [Spot(memory(p.level), float(p.value)) for p in found.points if p.value is not None]
    bounds = [(memory(level), float(bound)) for level, bound in found.steps]
    known = [Known(one.name, memory(one.level), float(one.value)) for one in found.published]
    own = None if found.own is None else memory(found.own)
    within = None
    if found.within is not None:
        low, high = within = memory(found.within[0]), memory(found.within[1])
        known = [one for one in known if low <= one.memory <= high]
        own = own if own is not None and low <= own <= high else None
    draw_frontier(spots, bounds, known, own, axes, within)


def draw_frontier(
    spots: Sequence[Spot],
    bounds: Sequence[tuple[float, float]],
    known: Sequence[Known],
    own: float | None,
    axes: Axes,
    within: tuple[float, float] | None = None,
) -> None:
    """Draw the frontier as steps by rising memory: a value found also holds with more memory, a bound with less.

    `spots` are by rising memory too; neither they nor `bounds` may be empty. `bounds` are (memory, bound) by rising
    memory, each valid between the memory of the previous one and its own; `own` is the capacity in the problem file,
    drawn as a line. `within` is the range of memory shown; None for all of it.
    """
    places = [*((spot.memory, spot.value) for spot in spots), *((one.memory, one.value) for one in known)]
    _scale(axes, "x", list(within or ()) or [memory for memory, _ in places] + ([] if own is None else [own]))
    _scale(axes, "y", [value for _, value in (*places, *bounds)])
    right = axes.get_xlim()[1]
    entries: list[tuple[Handle, str]] = [
        (Line2D([], [], color=FOUND, marker="o", markersize=5), "Best found"),
        (Line2D([], [], color=PROVED, linewidth=1.2), "Lower bound"),
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
    legend_under_axis(axes, entries)
    label(axes, [(one.memory, one.value, one.name) for one in known], OTHER)


def _fill(upper: Sequence[tuple[float, float]], lower: Sequence[tuple[float, float]], axes: Axes) -> None:
    """Fill the area between the best values (`upper`) and the bounds (`lower`), both step functions of memory.

    It is split at the corners of both, since a value holds for more memory and a bound for less.
    """
    corners = sorted({memory for memory, _ in (*upper, *lower) if memory >= upper[0][0]})
    for left, right in pairwise(corners):
        value = [v for memory, v in upper if memory <= left][-1]
        bound = next(v for memory, v in lower if memory >= right)
        if bound < value:
            axes.fill_between([left, right], bound, value, color=OPEN, linewidth=0)


def _scale(axes: Axes, name: Literal["x", "y"], numbers: Sequence[float]) -> None:
    """Set limits a little beyond the numbers; logarithmic where they differ by much, with plain tick labels."""
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
