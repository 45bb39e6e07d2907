"""Rendering: a plot drawn on a figure of a fitting size, returned as PNG or SVG bytes."""

from __future__ import annotations

import io
import textwrap
from statistics import quantiles
from typing import Literal

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text

from pipesched.schedule.drawing.boxes import boxes_of, makespan, row_shares
from pipesched.schedule.timeline import Timeline
from plots.catalogue import Draw
from plots.zoom import Window

Format = Literal["png", "svg"]

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
TITLE = 11.0  # points


def render(
    timeline: Timeline,
    draw: Draw,
    format: Format = "png",
    title: str | None = None,
    window: Window | None = None,
    row: float = 1.0,
) -> bytes:
    """The image of one plot, of all of it or of a window (ticks); the same timeline gives the same bytes."""
    return saved(make_figure(timeline, draw, title, window, row), format)


def saved(figure: Figure, format: Format = "png") -> bytes:
    """A figure as an image file; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    # Matplotlib reads these two only from its settings; the context puts them back. Text stays text in the SVG.
    with mpl.rc_context({"svg.hashsalt": "pipesched", "svg.fonttype": "none"}):
        figure.savefig(buffer, format=format, dpi=DPI, metadata={"Date": None} if format == "svg" else None)
    return buffer.getvalue()


def make_figure(
    timeline: Timeline, draw: Draw, title: str | None = None, window: Window | None = None, row: float = 1.0
) -> Figure:
    """The figure that `render` saves, laid out so that nothing is clipped; rows so many times as high as usual."""
    size = figure_size(timeline, window, row)
    figure = Figure(figsize=size, dpi=DPI, layout=ConstrainedLayoutEngine(w_pad=MARGIN, h_pad=MARGIN))
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


def figure_size(timeline: Timeline, window: Window | None = None, row: float = 1.0) -> tuple[float, float]:
    """Inches, without title and legend: wider with more boxes in a row, higher with more devices, within limits."""
    problem = timeline.problem
    since, until = window or (0, makespan(timeline))
    drawn = [box for box in boxes_of(timeline) if box.end > box.start and box.start < until and since < box.end]
    ticks = [box.end - box.start for box in drawn] or [makespan(timeline) or 1]
    wide, high = (NAMED_BOX, NAMED_ROW) if any(box.name and not box.sends for box in drawn) else (BOX, 1.0)
    tenths = quantiles(ticks, n=10, method="inclusive") if len(ticks) > 1 else ticks * 9
    narrow, typical = tenths[0], tenths[4]
    inches = 1.5 + (until - since) * max(wide / typical, NARROW_BOX / narrow)
    width = min(max(inches, WIDTH[0]), WIDTH[1])
    each = min(max(ROWS / problem.devices, ROW[0]), ROW[1]) * row_shares(problem) * high * row
    return width, AXIS + min(each * problem.devices, HIGHEST)


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
