"""A line of a drawing made of characters: pieces of text, each with the colours that a terminal may show it in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from pipesched.schedule.drawing.colours import RGB


class Piece(NamedTuple):
    """Some characters on a background; None is the terminal's own."""

    text: str
    fill: RGB | None = None


Line = tuple[Piece, ...]


def line_of(cells: Iterable[Piece]) -> Line:
    """Pieces one after the other, neighbours of one colour as a single piece."""
    joined = groupby(cells, key=lambda cell: cell.fill)
    return tuple(Piece("".join(cell.text for cell in run), fill) for fill, run in joined)


def plain(line: Line) -> str:
    """A line without colours."""
    return "".join(piece.text for piece in line)
