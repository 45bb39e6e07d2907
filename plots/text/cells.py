"""A row of a Gantt chart made of characters: boxes with the names of passes, or samples where boxes are narrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipesched.problem.quantities import Ticks
from pipesched.schedule.drawing.colours import RGB
from pipesched.schedule.drawing.sampling import sampled
from plots.text.line import Line, Piece, line_of
from plots.text.scale import Scale

IDLE = "."


class Mark(NamedTuple):
    """A box of a row from `start` to `end` in ticks, with three labels of different lengths, and its colour.

    `letter` is the kind of pass, `name` also has its micro-batch, `number` is the micro-batch alone.
    """

    start: Ticks
    end: Ticks
    letter: str
    name: str
    number: str
    fill: RGB


def labelled(marks: Iterable[Mark], scale: Scale, coloured: bool) -> Line:
    """Return the row with each box drawn as its longest label that fits.

    Dashes follow to its end, or if `coloured` its colour.
    """
    cells = [_idle(coloured)] * scale.columns
    for mark in marks:
        left, right = scale.column(mark.start), scale.column(mark.end)
        cells[left:right] = [Piece(character, mark.fill) for character in _label(mark, right - left, coloured)]
    return line_of(cells)


def _label(mark: Mark, columns: int, coloured: bool) -> str:
    """Return the longest label of at most `columns` characters, padded to that number; empty labels are padding alone.

    A number alone is used only if the box is `coloured`, so that the colour shows the kind.
    """
    names = [mark.name, *([mark.number] if coloured else []), mark.letter]
    longest = next((name for name in names if 0 < len(name) <= columns), "")
    return longest.ljust(columns, " " if coloured else "-")


def in_proportion(marks: Iterable[Mark], scale: Scale, coloured: bool) -> Line:
    """Return the row with one letter per column.

    It is the letter of a box there, chosen so that letters are in proportion to time. `coloured`: the line is shown in
    colours, so that idle time needs no sign of its own.
    """
    since, ticks_each = scale.window[0], scale.ticks_each
    boxes = [
        ((mark.start - since) / ticks_each, (mark.end - since) / ticks_each, Piece(mark.letter, mark.fill))
        for mark in marks
    ]
    return line_of(kind or _idle(coloured) for kind in sampled(boxes, scale.columns))


def _idle(coloured: bool) -> Piece:
    return Piece(" " if coloured else IDLE)
