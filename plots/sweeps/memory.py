"""Time against memory, a colour for each placement or other choice: best found, proved bound, time saved by memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pipesched.problem.formatting import plain
from pipesched.sweeps.axes import Axis
from pipesched.sweeps.table import Table
from plots.drawing.frame import Handle
from plots.drawing.labels import label
from plots.render import Format, saved
from plots.sweeps.canvas import LOGARITHMIC, entitle, figure_of_panels, legend, spread_out
from plots.sweeps.facets import Panel, Series, left_out, panels, with_unit

_BAND = 0.12
_PAD = 0.04
_NAMES = 6  # of published schedules in a panel


def render_memory(found: Table, x: Axis, format: Format = "png") -> bytes:
    """Return the picture of time against memory, the axis `x`.

    In the upper part times are steps: a value found is valid with more memory too, a bound with less. The lower part
    has the time saved by each further unit of memory, from each capacity to the next. Some cell must have a schedule.
    """
    shown = panels(found, x)
    figure, grid = figure_of_panels([panel.title for panel in shown], (1.0, 0.38))
    objective = next(row.objective for row in found.rows if row.objective)
    unit = f"\n({found.time_unit})" if found.time_unit else ""
    one = "activation" if found.memory_unit == "activations" else found.memory_unit
    for panel, (upper, lower) in zip(shown, grid, strict=True):
        _draw_times(panel, upper)
        _draw_savings(panel, lower)
        upper.set_ylabel(f"{objective.capitalize()}{unit.replace(chr(10), ' ')}", parse_math=False)
        lower.set_ylabel(f"Saved per {one}{unit}", parse_math=False, fontsize=8.5)
        lower.set_xlabel(with_unit(x, found), parse_math=False)
    gaps = [row.outcome.gap for row in found.rows if row.outcome and row.outcome.gap is not None]
    proved = sum(gap == 0 for gap in gaps)
    worst = f"; the largest gap is {100 * max(gaps):.2f} %" if gaps and proved < len(gaps) else ""
    entitle(
        figure,
        f"{found.sweep.name}: {objective} against memory",
        f"{proved} of {len(gaps)} points proved optimal{worst}",
        left_out(found, x),
    )
    figure.draw_without_rendering()
    for panel, (upper, _) in zip(shown, grid, strict=True):
        _name_published(panel, upper)
    legend(figure, _entries(shown))
    return saved(figure, format)


def _draw_times(panel: Panel, axes: Axes) -> None:
    points = [float(x) for series in panel.series for x, row in series.rows if row.value is not None] or [0.0]
    low, high = min(points), max(points)
    pad = _PAD * ((high - low) or high or 1)
    for series in panel.series:
        _draw_series(series, high + pad, axes)
    for series in panel.series:
        places = published_places(series, high)
        axes.plot(*_columns(places), "D", color=series.colour, markersize=3.6, markerfacecolor="white", mew=1.0)
    axes.set_xlim(low - pad, high + pad)
    spread_out(axes)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))


def _draw_series(series: Series, right: float, axes: Axes) -> None:
    found = [(float(x), float(row.value)) for x, row in series.rows if row.value is not None]
    proved = [(float(x), float(row.lower_bound)) for x, row in series.rows if row.lower_bound is not None]
    if not found or not proved:
        return
    upper, lower = [*found, (right, found[-1][1])], [*proved, (right, proved[-1][1])]
    corners = sorted({x for x, _ in (*upper, *lower) if x >= upper[0][0]})
    for left, end in pairwise(corners):
        value = [v for x, v in upper if x <= left][-1]
        bound = next(b for x, b in lower if x >= end)
        axes.fill_between([left, end], bound, value, color=series.colour, alpha=_BAND, linewidth=0)
    axes.step(*_columns(lower), where="pre", color=series.colour, linewidth=0.9, linestyle=(0, (3, 2)))
    axes.step(*_columns(upper), where="post", color=series.colour, linewidth=1.7)
    gaps = [(float(x), float(row.lower_bound), float(row.value)) for x, row in series.rows
            if row.value is not None and row.lower_bound is not None]  # fmt: skip
    axes.vlines([x for x, _, _ in gaps], [b for _, b, _ in gaps], [v for _, _, v in gaps], series.colour, linewidth=1)
    axes.plot(*_columns([(x, bound) for x, bound, _ in gaps]), "_", color=series.colour, markersize=7, mew=1.4)
    axes.plot(*_columns(found), "o", color=series.colour, markersize=4.5)


def published_places(series: Series, most: float) -> list[tuple[float, float, str]]:
    """Return (memory, time, name) of the published schedules that fit, and need no more memory than `most`.

    Memory and time are in the units of the axes. By rising memory, then time, then name, without duplicates.
    """
    places = {
        (float(one.memory), float(one.value), one.name)
        for _, row in series.rows
        for one in (row.outcome.published if row.outcome else ())
        if one.fits and one.memory is not None and one.value is not None
    }
    return sorted(place for place in places if place[0] <= most)


def _draw_savings(panel: Panel, axes: Axes) -> None:
    """Draw as steps, from each capacity to the next, by how much the best time found falls for each unit of memory."""
    savings: list[tuple[float, float]] = []
    for n, series in enumerate(panel.series):
        found = [(float(x), float(row.value)) for x, row in series.rows if row.value is not None]
        width = max(1.2, 1.2 + 0.7 * (len(panel.series) - 1 - n))  # so that equal ones are all seen
        saved_each = [((a[1] - b[1]) / (b[0] - a[0]), a[0], b[0]) for a, b in pairwise(found)]
        savings += [(start, one) for one, start, _ in saved_each]
        if saved_each:
            edges = [saved_each[0][1], *(end for _, _, end in saved_each)]
            axes.stairs([one for one, _, _ in saved_each], edges, color=series.colour, linewidth=width, baseline=None)
    axes.set_ylim(bottom=0)
    positive = [height for _, height in savings if height > 0]
    if positive and max(positive) > LOGARITHMIC * min(positive):
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.5, max(positive) * 1.5)
        axes.yaxis.set_major_locator(LogLocator(subs=(1,)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))


def _name_published(panel: Panel, axes: Axes) -> None:
    """Label the published schedules that no other one beats in both time and memory, at most `_NAMES` of them."""
    places = [(place, series.colour) for series in panel.series for place in published_places(series, float("inf"))]
    left, right = axes.get_xlim()
    places = [one for one in places if left <= one[0][0] <= right]
    best = [
        one for one in places
        if not any(o[0][:2] != one[0][:2] and o[0][0] <= one[0][0] and o[0][1] <= one[0][1] for o in places)
    ]  # fmt: skip
    label(axes, [place for place, _ in sorted(best)[:_NAMES]], "#444444")


def _entries(shown: Sequence[Panel]) -> list[tuple[Handle, str]]:
    entries: list[tuple[Handle, str]] = [
        (Line2D([], [], color=series.colour, marker="o", markersize=4.5), series.name) for series in shown[0].series
    ]
    grey = "#5f5f5f"
    return [
        *entries,
        (Line2D([], [], color=grey, marker="_", linewidth=0.9, linestyle=(0, (3, 2))), "lower bound"),
        (Patch(facecolor=grey, alpha=2 * _BAND), "open: between the two"),
        (Line2D([], [], color=grey, marker="D", markersize=3.6, markerfacecolor="white", linestyle=""), "published"),
    ]


def _columns(points: Sequence[tuple[float, float] | tuple[float, float, str]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]
