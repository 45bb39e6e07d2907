"""Makespan against span of every cell, with its proved bound, and of the published schedules that fit."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pipesched.sweeps.axes import Axis
from pipesched.sweeps.table import Table
from plots.drawing.frame import Handle
from plots.render import Format, saved
from plots.sweeps.canvas import entitle, figure_of_panels, legend, spread_out
from plots.sweeps.facets import Panel, left_out, panels

_GREY = "#8a8a8a"


def render_makespan_span(found: Table, x: Axis, format: Format = "png") -> bytes:
    """Return the picture of makespan against span, with a line from each point to the bound on its objective.

    Nothing is below the diagonal. There is a panel for each combination of values on the axes that are neither `x` nor
    drawn as series (`panels`). `format` is that of the bytes returned.
    """
    shown = panels(found, x)
    figure, grid = figure_of_panels([panel.title for panel in shown])
    unit = f" ({found.time_unit})" if found.time_unit else ""
    for panel, (axes,) in zip(shown, grid, strict=True):
        _draw(panel, axes)
        axes.set_xlabel(f"Span{unit}", parse_math=False)
        axes.set_ylabel(f"Makespan{unit}", parse_math=False)
    entitle(
        figure,
        f"{found.sweep.name}: makespan against span",
        "of each cell's best schedule and of published ones",
        left_out(found, x),
    )
    legend(figure, _entries(shown))
    return saved(figure, format)


def _draw(panel: Panel, axes: Axes) -> None:
    for series in panel.series:
        for _, row in series.rows:
            known = row.outcome
            if known is None or known.makespan is None or known.span is None:
                continue
            for one in known.published:
                if one.fits and one.span is not None and one.makespan is not None:
                    axes.plot(float(one.span), float(one.makespan), "D", color=series.colour, markersize=3,
                              markerfacecolor="white", mew=0.8, zorder=2)  # fmt: skip
            x, y, bound = float(known.span), float(known.makespan), float(known.lower_bound or 0)
            if row.cell.problem.objective.by_device:
                axes.plot([bound, x], [y, y], color=series.colour, linewidth=1.2, zorder=3)
            elif row.cell.problem.objective.from_zero:
                axes.plot([x, x], [bound, y], color=series.colour, linewidth=1.2, zorder=3)
            axes.plot(x, y, "o", color=series.colour, markersize=5, zorder=4)
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    ends = max(left, low), min(right, high)
    if ends[0] < ends[1]:
        axes.plot(ends, ends, color=_GREY, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.set(xlim=(left, right), ylim=(low, high))
    spread_out(axes, both=True)


def _entries(shown: Sequence[Panel]) -> list[tuple[Handle, str]]:
    entries: list[tuple[Handle, str]] = [
        (Line2D([], [], color=one.colour, marker="o", linestyle=""), one.name) for one in shown[0].series
    ]
    grey = "#5f5f5f"
    return [
        *entries,
        (Line2D([], [], color=grey, linewidth=1.2), "to the bound"),
        (Line2D([], [], color=grey, marker="D", markersize=3, markerfacecolor="white", linestyle=""), "published"),
        (Line2D([], [], color=_GREY, linewidth=0.8, linestyle=(0, (4, 3))), "makespan = span"),
    ]
