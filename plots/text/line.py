"""Lines of drawings made of characters: pieces of text, each with a colour that a terminal may show."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from pipesched.schedule.drawing.colours import RGB


class Piece(NamedTuple):
    """Some characters on a background colour; None is the terminal's own."""

    text: str
    fill: RGB | None = None


Line = tuple[Piece, ...]


def line_of(cells: Iterable[Piece]) -> Line:
    """Return pieces as a line, neighbours of one colour joined."""
    joined = groupby(cells, key=lambda cell: cell.fill)
    return tuple(Piece("".join(cell.text for cell in run), fill) for fill, run in joined)
