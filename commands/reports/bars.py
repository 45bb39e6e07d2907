"""Bars that set schedules against each other: work of the busiest device, idle time up to the bound, time above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from commands.shared.console import console
from commands.shared.encoding import encodable
from commands.shared.tables import Cell
from pipesched.problem.problem import Objective
from pipesched.schedule.metrics import Metrics

LEAST, MOST = 10, 28  # columns of the longest bar
# Each part differs by its character too, where there is no colour or none that the reader sees.
PARTS = (
    ("█", "green", "work of the busiest device"),
    ("░", "yellow", "its idle time up to the bound"),
    ("▓", "bright_red", "above the bound"),
)


class Bar(NamedTuple):
    """Where the parts of a bar end, in ticks; the last end is the schedule's value."""

    work: float
    bound: float
    value: float


def bar_of(metrics: Metrics, objective: Objective, bound: int) -> Bar:
    """A schedule that breaks the memory cap may lie below the bound, and has no part above it."""
    value = float(metrics.value_ticks(objective))
    work = value * (1 - (metrics.bubble(objective) or 0.0))
    return Bar(work, max(work, min(value, float(bound))), value)


def drawn(bars: Sequence[Bar], columns: int) -> list[Cell]:
    """The bars, the longest of them in so many columns."""
    longest = max((bar.value for bar in bars), default=0.0) or 1.0
    return [_drawn(bar, columns / longest) for bar in bars]


def _drawn(bar: Bar, scale: float) -> Text:
    text, at = Text(), 0
    for end, (character, colour, _) in zip(bar, PARTS, strict=True):
        until = round(end * scale)
        text.append(encodable(character) * (until - at), colour)
        at = until
    return text


def show_legend() -> None:
    """Say what the parts of the bars are."""
    said = [Text.assemble((encodable(character), colour), f" {name}") for character, colour, name in PARTS]
    console().print(Text("  ").join(said), soft_wrap=True)
