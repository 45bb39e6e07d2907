"""Rendering: a plot drawn on a figure of a fitting size, returned as PNG, SVG or PDF bytes."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable
from statistics import quantiles
from typing import Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from pipesched.schedule.drawing.boxes import Box, boxes_of, makespan, row_shares
from pipesched.schedule.timeline import Timeline
from plots.catalogue import Draw
from plots.drawing.zoom import Window, readable_part

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


def render(
    timeline: Timeline,
    draw: Draw,
    format: Format = "png",
    title: str | None = None,
    window: Window | None = None,
    row: float = 1.0,
    zoomed: bool = False,
) -> bytes:
    """The image of one plot, of all of it or of a window (ticks); the same timeline gives the same bytes.

    `zoomed`: of a whole too wide to be read a part is drawn once more below it.
    """
    if zoomed and window is None and natural_width(timeline) > READABLE:
        return saved(figure_with_part(timeline, draw, title, row), format)
    return saved(make_figure(timeline, draw, title, window, row), format)


def saved(figure: Figure, format: Format = "png") -> bytes:
    """A figure as an image file; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    # Matplotlib reads these two only from its settings; the context puts them back. Text stays text in the SVG.
    with mpl.rc_context({"svg.hashsalt": "pipesched", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=format, dpi=DPI, metadata=_UNDATED.get(format))
    return buffer.getvalue()


def paper(width: float, height: float) -> Figure:
    """A figure of so many inches with nothing on it, which keeps what is outside of its axes apart."""
    return Figure(figsize=(width, height), dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN))


def make_figure(
    timeline: Timeline, draw: Draw, title: str | None = None, window: Window | None = None, row: float = 1.0
) -> Figure:
    """The figure that `render` saves, laid out so that nothing is clipped; rows so many times as high as usual."""
    figure = paper(*figure_size(timeline, window, row))
    axes = figure.add_subplot()
    draw(timeline, axes)
    if window:
        tick = float(timeline.problem.tick)
        axes.set_xlim(window[0] * tick, window[1] * tick)
    outside: list[Artist] = [*axes.findobj(Legend)]
    if title:
        outside.append(_set_title(axes, title))
    _make_room(figure, outside)
    return figure


def figure_with_part(timeline: Timeline, draw: Draw, title: str | None = None, row: float = 1.0) -> Figure:
    """The whole, and below it a part around a period of the steady state, at a scale at which it can be read."""
    share = (READABLE - SIDES) / (natural_width(timeline) - SIDES)
    window = readable_part(timeline, min(share, PART))
    _, high = figure_size(timeline, window, row)
    figure = paper(READABLE, 2 * high)
    whole, part = figure.subplots(2, 1)
    tick = float(timeline.problem.tick)
    outside: list[Artist] = []
    for axes in (whole, part):
        draw(timeline, axes)
    outside += part.findobj(Legend)
    for legend in whole.findobj(Legend):
        legend.remove()
    since, until = (edge * tick for edge in window)
    part.set_xlim(since, until)
    for edge in (since, until):
        whole.axvline(edge, color="black", linewidth=1.2, linestyle="dashed", zorder=4)
    if title:
        outside.append(_set_title(whole, title))
    outside.append(part.set_title("The part between the dashed lines", loc="left", fontsize=TITLE - 1))
    _make_room(figure, outside)
    return figure


def natural_width(timeline: Timeline, window: Window | None = None) -> float:
    """Inches at which the numbers of all boxes can be read."""
    since, until = window or (0, makespan(timeline))
    drawn = [box for box in boxes_of(timeline) if box.end > box.start and box.start < until and since < box.end]
    ticks = [box.end - box.start for box in drawn] or [makespan(timeline) or 1]
    wide = NAMED_BOX if _named(drawn) else BOX
    tenths = quantiles(ticks, n=10, method="inclusive") if len(ticks) > 1 else ticks * 9
    return SIDES + (until - since) * max(wide / tenths[4], NARROW_BOX / tenths[0])


def figure_size(timeline: Timeline, window: Window | None = None, row: float = 1.0) -> tuple[float, float]:
    """Inches, without title and legend: wider with more boxes in a row, higher with more devices, within limits."""
    problem = timeline.problem
    high = NAMED_ROW if _named(boxes_of(timeline)) else 1.0
    width = min(max(natural_width(timeline, window), WIDTH[0]), WIDTH[1])
    each = min(max(ROWS / problem.devices, ROW[0]), ROW[1]) * row_shares(problem) * high * row
    return width, AXIS + min(each * problem.devices, HIGHEST)


def _named(boxes: Iterable[Box]) -> bool:
    """True if one of the boxes shows the name of its task."""
    return any(box.name and not box.sends for box in boxes)


def _set_title(axes: Axes, title: str) -> Text:
    """Lines longer than the axes are wrapped: the layout makes room for the title's height, not for its width."""
    text = axes.set_title(title, loc="left", fontsize=TITLE, parse_math=False)
    lines = title.splitlines()
    widest, room = text.get_window_extent().width, axes.get_window_extent().width
    if widest > room:
        characters = max(1, int(max(map(len, lines)) * room / widest))
        text.set_text("\n".join(part for line in lines for part in textwrap.wrap(line, characters) or [""]))
    return text


def _make_room(figure: Figure, outside: list[Artist]) -> None:
    """Make the figure higher by what is above and below the axes, so that the rows keep their height."""
    pixels = sum(artist.get_window_extent().height for artist in outside)
    figure.set_figheight(figure.get_figheight() + pixels / figure.dpi)
