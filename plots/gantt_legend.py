"""The legend of the Gantt chart: the kinds of pass that occur, and the shades of chunks or directions."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.legend_handler import HandlerBase, HandlerTuple
from matplotlib.patches import Patch, Rectangle
from matplotlib.transforms import Transform

from pipesched.problem.passes import BW, F, PassKind
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.boxes import Box
from pipesched.schedule.drawing.colours import EDGE, LINE, NAMES, TRANSFER, shade, shade_names
from plots.frame import Handle, legend_below


def draw_legend(axes: Axes, problem: Problem, boxes: list[Box]) -> None:
    """Below the chart; names only what the boxes show."""
    handlers = {tuple: HandlerTuple(ndivide=None, pad=0), OverlappedBlock: OverlappedHandler()}
    legend_below(axes, _entries(problem, boxes), handlers)


def _entries(problem: Problem, boxes: list[Box]) -> list[tuple[Handle, str]]:
    """The kinds that occur, the overlapped block if there is one, and the shades if there is more than one."""
    alone = {box.of.kind for box in boxes if not box.overlapped and not box.sends}
    entries: list[tuple[Handle, str]] = [(_patch(kind, 0, 1), name) for kind, name in NAMES.items() if kind in alone]
    if any(box.overlapped for box in boxes):
        entries.append((OverlappedBlock(), "Overlapped forward & backward"))
    if any(box.sends for box in boxes):
        entries.append((Patch(facecolor=TRANSFER, edgecolor=EDGE, linewidth=LINE), "Transfer to another device"))
    names = shade_names(problem.placement)
    kinds = [kind for kind in NAMES if any(box.of.kind is kind for box in boxes)]
    if len(names) > 1 and kinds:
        for number, name in enumerate(names):
            entries.append((tuple(_patch(kind, number, len(names)) for kind in kinds), name))
    return entries


def _patch(kind: PassKind, number: int, count: int) -> Patch:
    return Patch(facecolor=shade(kind, number, count), edgecolor=EDGE, linewidth=LINE)


class OverlappedBlock(Patch):
    """Stands for an overlapped block in the legend: forward above backward."""


class OverlappedHandler(HandlerBase):
    """Draws the legend's picture of an overlapped block."""

    def create_artists(
        self, legend: Legend, orig_handle: Artist, xdescent: float, ydescent: float, width: float, height: float,  # noqa: ARG002
        fontsize: float, trans: Transform,  # noqa: ARG002
    ) -> list[Artist]:  # fmt: skip
        """Two half boxes, the forward's on top."""
        return [
            Rectangle(
                (-xdescent, -ydescent + lift * height), width, height / 2,
                facecolor=shade(kind, 0, 1), edgecolor=EDGE, linewidth=LINE, transform=trans,
            )
            for kind, lift in ((F, 0.5), (BW, 0.0))
        ]  # fmt: skip
