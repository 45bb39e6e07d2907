"""Rendering of plots: a figure of a fitting size, saved as PNG, SVG or PDF."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from statistics import quantiles
from typing import Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from pipesched.problem.formatting import plain
from pipesched.schedule.drawing.boxes import Box, boxes_of, makespan, row_shares
from pipesched.schedule.timeline import Timeline
from plots.catalogue import Draw, Plot
from plots.drawing.zoom import Window, readable_part, steady_cut

Format = Literal["png", "svg", "pdf"]

DPI = 120  # of the PNG; an SVG has no pixels
BOX, NARROW_BOX = 0.24, 0.16  # inches: the typical box, and one of the narrowest tenth; both hold two digits
NAMED_BOX = 0.5  # inches: the typical box that holds a task's name
NAMED_ROW = 1.3  # how much higher rows are where boxes hold names
WIDTH = (7.0, 32.0)  # inches, least and most
ROW = (0.3, 0.5)
ROWS = 5.0  # inches that the rows share before they get lower
HIGHEST = 40.0  # inches for all rows: a thousand devices must still make a file that opens
AXIS = 0.9  # inches: the time axis and its label
MARGIN = 0.1  # inches
SIDES = 1.5  # inches: the names of devices and the margins
PART = 0.4  # of all time, what the part below shows at most
READABLE = 24.0  # inches; of a whole that would be wider a part is drawn below
# Files say no date, so that the same figure gives the same bytes.
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
TITLE = 11.0  # points


def render_plot(
    timeline: Timeline, plot: Plot, format: Format = "png", title: str | None = None, window: Window | None = None
) -> bytes:
    """Return the image of a plot, of the whole timeline or a window (ticks), in the form best for this many devices."""
    one = plot.of(timeline, window is not None)
    return render(timeline, one.draw, format, title, window, one.row, one.zoomed, one.widest)


def render(
    timeline: Timeline,
    draw: Draw,
    format: Format = "png",
    title: str | None = None,
    window: Window | None = None,
    row: float = 1.0,
    zoomed: bool = False,
    widest: float = WIDTH[1],
) -> bytes:
    """Return the image of one plot, of the whole timeline or a window (ticks); the same timeline gives the same bytes.

    `zoomed`: if the whole is too wide to be readable, the steady state is left out, or a part is also drawn below it.
    `widest` is in inches. `row` is the height of a device's row relative to the usual one.
    """
    if zoomed and window is None and natural_width(timeline) > READABLE:
        return saved(figure_with_part(timeline, draw, title, row), format)
    return saved(make_figure(timeline, draw, title, window, row, widest), format)


def saved(figure: Figure, format: Format = "png") -> bytes:
    """Return a figure as an image file; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    # Matplotlib reads these only from its settings; the context puts them back. Text stays text in the SVG.
    with mpl.rc_context(
        {
            "svg.hashsalt": "pipesched",
            "svg.fonttype": "none",
            "pdf.fonttype": 42,
            "figure.autolayout": False,
            "figure.constrained_layout.use": False,
        }
    ):
        if format == "png":
            _lay_out(figure)
        figure.savefig(buffer, format=format, dpi=DPI, metadata=_UNDATED.get(format))
    return buffer.getvalue()


def _lay_out(figure: Figure) -> None:
    """Lay a figure out and leave it without a layout engine.

    With one, `savefig` draws the figure twice, first to no image. The sizes of text in an SVG or PDF are others, and
    known only while it is drawn.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def paper(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches, whose layout separates what is outside of its axes."""
    return Figure(figsize=(width, height), dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN))


def make_figure(
    timeline: Timeline,
    draw: Draw,
    title: str | None = None,
    window: Window | None = None,
    row: float = 1.0,
    widest: float = WIDTH[1],
) -> Figure:
    """Return the figure of one plot, high enough for its title and legend, so that nothing is clipped.

    `draw` draws the plot on its axes, of which `window` (ticks; None: all) is shown. `row` is the relative height of
    rows, `widest` the greatest width in inches. Without `title` it has none.
    """
    width, high = figure_size(timeline, window, row)
    figure = paper(min(width, widest), high)
    axes = figure.add_subplot()
    if window:
        tick = float(timeline.problem.tick)
        axes.set_xlim(window[0] * tick, window[1] * tick)
    draw(timeline, axes)
    outside: list[Artist] = [*axes.findobj(Legend)]
    if title:
        outside.append(_set_title(axes, title))
    _make_room(figure, outside)
    return figure


def figure_with_part(timeline: Timeline, draw: Draw, title: str | None = None, row: float = 1.0) -> Figure:
    """Return the figure of a timeline too wide to read, with its steady state cut out if there is one.

    If that is still too wide, or there is none, a readable part is drawn below the whole. `row` is the height of a
    device's row relative to the usual one.
    """
    last = float(makespan(timeline))
    most = (READABLE - SIDES) / (natural_width(timeline) - SIDES)
    cut = steady_cut(timeline, most * last)
    if cut is not None and last - (cut[1] - cut[0]) <= most * last * 1.001:
        _, high = figure_size(timeline, None, row)
        figure = paper(READABLE, high)
        tops = _both_ends(timeline, figure, figure.add_gridspec(1, 1)[0], draw, cut)
        outside: list[Artist] = tops[0].findobj(Legend)
    else:
        window = readable_part(timeline, min(most, PART))
        figure = paper(READABLE, 2 * figure_size(timeline, window, row)[1])
        grid = figure.add_gridspec(2, 1)
        tops = [figure.add_subplot(grid[0])] if cut is None else _both_ends(timeline, figure, grid[0], draw, cut)
        if cut is None:
            draw(timeline, tops[0])
        for legend in tops[0].findobj(Legend):
            legend.remove()
        outside = _draw_part(timeline, figure.add_subplot(grid[1]), draw, window, tops)
    if title:
        outside.append(_set_title(tops[0], title))
    _make_room(figure, outside)
    return figure


def _draw_part(timeline: Timeline, axes: Axes, draw: Draw, window: Window, wholes: Sequence[Axes]) -> list[Artist]:
    """Draw the part of the time in `window` on `axes`, and dashed lines at its edges in the pictures of the whole.

    Returns the legend and title, which are outside the axes.
    """
    problem = timeline.problem
    since, until = (edge * float(problem.tick) for edge in window)
    axes.set_xlim(since, until)
    draw(timeline, axes)
    for whole in wholes:
        for edge in (since, until):
            if whole.get_xlim()[0] <= edge <= whole.get_xlim()[1]:
                whole.axvline(edge, color="black", linewidth=1.2, linestyle="dashed", zorder=4)
    found = any(whole.get_xlim()[0] <= since and until <= whole.get_xlim()[1] for whole in wholes)
    what = "The part between the dashed lines" if found else "A part of the steady state"
    text = f"{what}: {plain(round(since, 3))} to {plain(round(until, 3))} {problem.time_unit}".rstrip()
    return [*axes.findobj(Legend), axes.set_title(text, loc="left", fontsize=TITLE - 1, parse_math=False)]


def _both_ends(timeline: Timeline, figure: Figure, place: SubplotSpec, draw: Draw, cut: Window) -> list[Axes]:
    """Draw the schedule before and after a cut, side by side in one scale, and return both axes, left one first.

    The legend is at the left one.
    """
    problem, last = timeline.problem, makespan(timeline)
    since, until, end = (tick * float(problem.tick) for tick in (*cut, last))
    grid = place.subgridspec(1, 2, width_ratios=(since, end - until))
    left, right = (figure.add_subplot(grid[at]) for at in (0, 1))
    for axes, window in ((left, (0, since)), (right, (until, end))):
        axes.set_xlim(*window)
        draw(timeline, axes)
    for legend in right.findobj(Legend):
        legend.remove()
    right.set_yticks([])
    right.set_ylabel("")
    right.spines["left"].set_visible(False)
    for axes, edge in ((left, 1), (right, 0)):
        axes.plot(
            [edge, edge], [0, 1], transform=axes.transAxes, marker=[(-1, -2), (1, 2)], markersize=9, linestyle="none",
            color="black", clip_on=False, zorder=5,
        )  # fmt: skip
    text = f"steady state from {plain(round(since, 3))} to {plain(round(until, 3))} {problem.time_unit}".rstrip()
    left.annotate(
        f"{text} left out", (1, 0.5), xycoords="axes fraction", xytext=(8, 0), textcoords="offset points",
        rotation=90, ha="left", va="center", fontsize=TITLE - 2, parse_math=False, annotation_clip=False,
    )  # fmt: skip
    return [left, right]


def natural_width(timeline: Timeline, window: Window | None = None) -> float:
    """Return the width in inches at which a number fits the typical box of a window (ticks; None: of all time).

    A small number then fits a box of the narrowest tenth.
    """
    since, until = window or (0, makespan(timeline))
    drawn = [box for box in boxes_of(timeline) if box.end > box.start and box.start < until and since < box.end]
    ticks = [box.end - box.start for box in drawn] or [makespan(timeline) or 1]
    wide = NAMED_BOX if _named(drawn) else BOX
    tenths = quantiles(ticks, n=10, method="inclusive") if len(ticks) > 1 else ticks * 9
    return SIDES + (until - since) * max(wide / tenths[4], NARROW_BOX / tenths[0])


def figure_size(timeline: Timeline, window: Window | None = None, row: float = 1.0) -> tuple[float, float]:
    """Return width and height in inches, without title and legend.

    It is wider with more boxes in a row, and higher with more devices. `window` (ticks) is the part of time that is
    drawn, None for all; `row` is the relative height of rows.
    """
    problem = timeline.problem
    high = NAMED_ROW if _named(boxes_of(timeline)) else 1.0
    width = min(max(natural_width(timeline, window), WIDTH[0]), WIDTH[1])
    each = min(max(ROWS / problem.devices, ROW[0]), ROW[1]) * row_shares(problem) * high * row
    return width, AXIS + min(each * problem.devices, HIGHEST)


def _named(boxes: Iterable[Box]) -> bool:
    """Return True if some box shows the name of its task."""
    return any(box.name and not box.sends for box in boxes)


def _set_title(axes: Axes, title: str) -> Text:
    """Set the title, wrapping lines longer than the axes, since the layout makes room for its height, not its width."""
    text = axes.set_title(title, loc="left", fontsize=TITLE, parse_math=False)
    lines = title.splitlines()
    widest, room = text.get_window_extent().width, axes.get_window_extent().width
    if widest > room:
        characters = max(1, int(max(map(len, lines)) * room / widest))
        text.set_text("\n".join(part for line in lines for part in textwrap.wrap(line, characters) or [""]))
    return text


def _make_room(figure: Figure, outside: list[Artist]) -> None:
    """Make the figure higher by the heights of `outside`, so that rows keep their height.

    These are drawn above and below the axes.
    """
    pixels = sum(artist.get_window_extent().height for artist in outside)
    figure.set_figheight(figure.get_figheight() + pixels / figure.dpi)
