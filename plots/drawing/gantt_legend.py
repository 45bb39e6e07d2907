"""The legend of the Gantt chart: kinds of pass that occur, and shades of chunks or directions."""

from __future__ import annotations

from collections.abc import Collection

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
from plots.drawing.frame import Handle, legend_under_axis

HANDLERS: dict[type, HandlerBase] = {tuple: HandlerTuple(ndivide=None, pad=0)}


def draw_legend(axes: Axes, problem: Problem, boxes: list[Box]) -> None:
    """Draw the legend under the chart, with entries only for what the boxes show."""
    legend_under_axis(axes, _entries(problem, boxes), HANDLERS | {OverlappedBlock: OverlappedHandler()})


def _entries(problem: Problem, boxes: list[Box]) -> list[tuple[Handle, str]]:
    """Return entries for kinds that occur, overlapped blocks and transfers if any, and shades if there are several."""
    alone = {box.of.kind for box in boxes if not box.overlapped and not box.sends}
    entries = kind_entries(alone)
    if any(box.overlapped for box in boxes):
        entries.append((OverlappedBlock(), "Overlapped forward & backward"))
    if any(box.sends for box in boxes):
        entries.append((Patch(facecolor=TRANSFER, edgecolor=EDGE, linewidth=LINE), "Transfer to another device"))
    return [*entries, *shade_entries(problem, {box.of.kind for box in boxes})]


def kind_entries(kinds: Collection[PassKind]) -> list[tuple[Handle, str]]:
    """Return legend entries (sample of the colour, name) for these kinds of pass."""
    return [(_patch(kind, 0, 1), name) for kind, name in NAMES.items() if kind in kinds]


def shade_entries(problem: Problem, kinds: Collection[PassKind]) -> list[tuple[Handle, str]]:
    """Return legend entries (samples, name) for the shades, which stand for chunks or directions.

    Empty if there is only one. Each entry shows all `kinds` in its shade; such entries are drawn by `HANDLERS`.
    """
    names, shown = shade_names(problem), [kind for kind in NAMES if kind in kinds]
    if len(names) < 2 or not shown:
        return []
    return [(tuple(_patch(kind, number, len(names)) for kind in shown), name) for number, name in enumerate(names)]


def _patch(kind: PassKind, number: int, count: int) -> Patch:
    return Patch(facecolor=shade(kind, number, count), edgecolor=EDGE, linewidth=LINE)


class OverlappedBlock(Patch):
    """The legend's symbol of an overlapped block: forward above backward."""


class OverlappedHandler(HandlerBase):
    """The drawer of the legend's symbol of an overlapped block."""

    def create_artists(
        self, legend: Legend, orig_handle: Artist, xdescent: float, ydescent: float, width: float, height: float,  # noqa: ARG002
        fontsize: float, trans: Transform,  # noqa: ARG002
    ) -> list[Artist]:  # fmt: skip
        """Return two half boxes, the forward's on top."""
        return [
            Rectangle(
                (-xdescent, -ydescent + lift * height), width, height / 2,
                facecolor=shade(kind, 0, 1), edgecolor=EDGE, linewidth=LINE, transform=trans,
            )
            for kind, lift in ((F, 0.5), (BW, 0.0))
        ]  # fmt: skip
