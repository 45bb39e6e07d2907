"""The time axis of drawings made of characters: ticks per column, and the times labelled under it."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from pipesched.schedule.drawing.boxes import Box
from pipesched.schedule.drawing.round_times import round_times
from plots.drawing.zoom import Window

_APART = 8  # columns between two named times, at the least


@dataclass(frozen=True)
class Scale:
    """The scale of a drawing: `columns` columns for the ticks of `window`.

    `exact` is True if every box begins and ends at the edge of a column.
    """

    window: Window
    columns: int
    exact: bool

    @property
    def ticks_each(self) -> float:
        """The ticks of one column."""
        return (self.window[1] - self.window[0]) / self.columns

    def column(self, tick: float) -> int:
        """Return the column at whose left edge a tick is, rounded; 0 or `columns` for ticks outside the window."""
        since, until = self.window
        return round((min(max(tick, since), until) - since) / (until - since) * self.columns)


def scale_of(boxes: list[Box], window: Window, room: int) -> Scale:
    """Return the exact scale of most columns, at most `room`; if there is none, the one of `room` columns.

    A scale is exact if a column, or several, are a common divisor of the times of all boxes and of the window.
    """
    since, until = window
    edges = {round(since), round(until), *(tick for box in boxes for tick in (box.start, box.end))}
    unit = gcd(*(edge - round(since) for edge in edges)) if since == round(since) and until == round(until) else 0
    units = round(until - since) // unit if unit else 0
    if 0 < units <= room:
        return Scale(window, room // units * units, True)
    return Scale(window, room, False)


def axis(scale: Scale, tick: float) -> str:
    """Return the axis: times in the file's unit, each written from its column on, if there is room.

    `tick` is the length of a tick in that unit.
    """
    since, until = (edge * tick for edge in scale.window)
    text = ""
    for at in round_times(since, until, scale.columns // _APART):
        column, name = scale.column(at / tick), f"|{at:.6g}"
        if column >= len(text) + bool(text) and column + len(name) <= scale.columns:
            text = text.ljust(column) + name
    return text
