"""The registry of plots: each module of this package registers one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.axes import Axes

from pipesched.registry import Registry
from pipesched.schedule.timeline import Timeline

# Draws on the Axes it gets and touches nothing else: no pyplot, no rcParams.
Draw = Callable[[Timeline, Axes], None]


@dataclass(frozen=True)
class Plot:
    """One view of a timeline: `title` says what it shows, `row` how much higher its rows are than usual.

    If `zoomed`, a part is drawn under the whole picture when that has too many boxes to read.
    """

    name: str
    title: str
    draw: Draw
    row: float = 1.0
    zoomed: bool = False


PLOTS: Registry[Plot] = Registry("plots", "plot")
