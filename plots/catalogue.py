"""The registry of plots: `PLOTS`, to which each module of this package adds one."""

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
    """A kind of picture of a timeline.

    `title` describes it; `row` is the height of its rows relative to the usual one; `widest` is its greatest width in
    inches. With `zoomed`, if there are too many boxes to read, the steady state is cut out or a part is drawn under the
    whole. `dense` is the plot drawn instead of this one where `dense.applies` returns True for the timeline (None:
    always).
    """

    name: str
    title: str
    draw: Draw
    row: float = 1.0
    zoomed: bool = False
    widest: float = 32.0
    dense: Plot | None = None
    applies: Callable[[Timeline], bool] | None = None

    def of(self, timeline: Timeline, part: bool = False) -> Plot:
        """Return the plot to draw of this timeline: `dense` if that applies, unless only a `part` is drawn."""
        dense = self.dense
        return dense if dense and not part and (dense.applies is None or dense.applies(timeline)) else self


PLOTS: Registry[Plot] = Registry("plots", "plot")
