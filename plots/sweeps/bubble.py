"""Idle time against a number such as micro-batches or transfer time: best found, proved bound, published schedules."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullFormatter

from pipesched.problem.formatting import plain
from pipesched.schedule.metrics import BUBBLE
from pipesched.sweeps.axes import Axis
from pipesched.sweeps.outcome import PublishedResult
from pipesched.sweeps.table import Row, Table
from plots.drawing.frame import Handle
from plots.drawing.labels import label
from plots.render import Format, saved
from plots.sweeps.canvas import entitle, figure_of_panels, legend
from plots.sweeps.facets import Panel, Series, left_out, named, panels, with_unit

_BAND, _GREY = 0.18, "#7a7a7a"
_LOGARITHMIC = 12  # an axis whose numbers differ by more than this factor is logarithmic


def render_bubble(found: Table, x: Axis, format: Format = "png") -> bytes:
    """Return the picture of idle time (mean over devices, in per cent) against `x`, a line for each series of cells.

    There are lines for the proved bounds and the bubble rate too, and for published schedules: each of them if there is
    one series, else the best. Some cell must have a schedule, and `x` must have numbers in all cells.
    """
    shown = panels(found, x)
    figure, grid = figure_of_panels([panel.title for panel in shown])
    objective = next(row.objective for row in found.rows if row.objective)
    for panel, (axes,) in zip(shown, grid, strict=True):
        _draw(panel, axes)
        axes.set_ylabel("Idle (mean over devices), %", parse_math=False)
        axes.set_xlabel(with_unit(x, found), parse_math=False)
    entitle(
        figure,
        f"{found.sweep.name}: idle time against {named(x)}",
        f"1 − mean work of the devices / {objective}\nbubble rate: 1 − work of the busiest device / {objective}",
        left_out(found, x),
    )
    figure.draw_without_rendering()
    for panel, (axes,) in zip(shown, grid, strict=True):
        if len(panel.series) == 1:
            _name_published(panel.series[0], axes)
    legend(figure, _entries(shown))
    return saved(figure, format)


def _draw(panel: Panel, axes: Axes) -> None:
    for series in panel.series:
        points = [(float(x), row) for x, row in series.rows]
        found = [(x, _idle(row, row.value)) for x, row in points if row.value]
        proved = [(x, _idle(row, row.lower_bound), _idle(row, row.value)) for x, row in points if row.value]
        if not found:
            continue
        xs = [x for x, _, _ in proved]
        axes.fill_between(
            xs, [b for _, b, _ in proved], [v for _, _, v in proved], color=series.colour, alpha=_BAND, linewidth=0
        )
        axes.plot(xs, [b for _, b, _ in proved], color=series.colour, linewidth=0.9, linestyle=(0, (3, 2)))
        axes.plot(*zip(*found, strict=True), "o-", color=series.colour, linewidth=1.7, markersize=4.5)
        rates = [(float(x), _bubble_rate(row)) for x, row in series.rows if row.value]
        axes.plot(*zip(*rates, strict=True), "x-.", color=series.colour, linewidth=0.8, markersize=4)
        if len(panel.series) > 1:
            best = [(x, _idle(row, row.best_published.value)) for x, row in points if row.best_published]
            axes.plot([x for x, _ in best], [b for _, b in best], "D:", color=series.colour, linewidth=1, markersize=3,
                      markerfacecolor="white")  # fmt: skip
    if len(panel.series) == 1:
        for line in published_lines(panel.series[0]).values():
            axes.plot(*zip(*line, strict=True), "D-", color=_GREY, linewidth=0.8, markersize=2.6, zorder=1)
    _scale(panel, axes)


def published_lines(series: Series) -> dict[str, list[tuple[float, float]]]:
    """Return by name the points of each published schedule in the cells of a series where it fits, by rising x.

    A point is (x, mean idle time in per cent). x is the cell's value on the horizontal axis. Cells without a best
    schedule have no points.
    """
    lines: dict[str, list[tuple[float, float]]] = {}
    for x, row in series.rows:
        for one in _fitting(row):
            lines.setdefault(one.name, []).append((float(x), _idle(row, one.value)))
    return lines


def _fitting(row: Row) -> list[PublishedResult]:
    if row.outcome is None or row.value is None:
        return []
    return [one for one in row.outcome.published if one.fits and one.value]


def _idle(row: Row, value: object) -> float:
    """Return the mean idle time of the devices in per cent if this cell's objective were `value`.

    The mean work of the devices is that of the best schedule found in the cell.
    """
    known = row.outcome
    assert known is not None and known.value
    idle = known.idle(row.objective) or 0.0
    return 100 * (1 - (1 - idle) * float(known.value) / float(value)) if value else 0.0  # type: ignore[arg-type]


def _bubble_rate(row: Row) -> float:
    """Return the bubble rate of the best schedule found, in per cent."""
    assert row.outcome is not None
    return 100 * (row.outcome.bubble or {}).get(row.objective, 0.0)


def _scale(panel: Panel, axes: Axes) -> None:
    numbers = sorted({float(x) for series in panel.series for x, _ in series.rows})
    if numbers[0] > 0 and numbers[-1] > _LOGARITHMIC * numbers[0]:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
    if len(numbers) <= 12:
        axes.set_xticks(numbers)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: plain(number)))
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))


def _name_published(series: Series, axes: Axes) -> None:
    label(axes, [(*line[-1], name) for name, line in published_lines(series).items()], _GREY)


def _entries(shown: Sequence[Panel]) -> list[tuple[Handle, str]]:
    series, grey = shown[0].series, "#5f5f5f"
    entries: list[tuple[Handle, str]] = [
        (Line2D([], [], color=one.colour, marker="o", markersize=4.5), one.name) for one in series
    ]
    known = Line2D([], [], color=_GREY, marker="D", markersize=2.6, linewidth=0.8)
    best = Line2D([], [], color=grey, marker="D", markersize=3, linewidth=1, linestyle=":", markerfacecolor="white")
    rate = Line2D([], [], color=grey, marker="x", linewidth=0.8, linestyle="-.", markersize=4)
    return [
        *entries,
        (Line2D([], [], color=grey, linewidth=0.9, linestyle=(0, (3, 2))), "at the proved bound, same work"),
        (Patch(facecolor=grey, alpha=2 * _BAND), "open: between the two"),
        (rate, BUBBLE),
        (known, "published") if len(series) == 1 else (best, "best published"),
    ]
