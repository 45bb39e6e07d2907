"""A row of a Gantt chart made of characters: each box with its pass or, where boxes are narrow, a sample a column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from plots.colours import RGB
from plots.text.line import Line, Piece, line_of
from plots.text.scale import Scale

IDLE = "."


class Mark(NamedTuple):
    """What a row shows from `start` to `end` in ticks.

    `letter` tells its kind, and `name` also its micro-batch, which `number` is alone.
    """

    start: int
    end: int
    letter: str
    name: str
    number: str
    fill: RGB


def labelled(marks: Iterable[Mark], scale: Scale, coloured: bool) -> Line:
    """A mark is its name, as far as its columns hold it, and dashes, or its colour, to its end."""
    cells = [_idle(coloured)] * scale.columns
    for mark in marks:
        left, right = scale.column(mark.start), scale.column(mark.end)
        cells[left:right] = [Piece(character, mark.fill) for character in _label(mark, right - left, coloured)]
    return line_of(cells)


def _label(mark: Mark, columns: int, coloured: bool) -> str:
    """So many characters. A number alone would not tell the kind where no colour does."""
    names = [mark.name, *([mark.number] if coloured else []), mark.letter]
    held = next((name for name in names if 0 < len(name) <= columns), "")
    return held.ljust(columns, " " if coloured else "-")


def sampled(marks: Iterable[Mark], scale: Scale, coloured: bool) -> Line:
    """In each column the letter of what takes most of it, or a third of that: along the row in proportion to time."""
    owed: Counter[Piece] = Counter()
    cells: list[Piece] = []
    for shares in _shares(marks, scale, _idle(coloured)):
        for kind, share in shares.items():
            owed[kind] = min(owed[kind] + share, 1.5)  # type: ignore[assignment]
        most = max(shares.values())
        chosen = max((kind for kind, share in shares.items() if share >= most / 3), key=lambda kind: owed[kind])
        owed[chosen] -= 1
        cells.append(chosen)
    return line_of(cells)


def _shares(marks: Iterable[Mark], scale: Scale, idle: Piece) -> list[dict[Piece, float]]:
    """What runs in each column, and the share of the column that it takes."""
    since, each = scale.window[0], scale.ticks_each
    found: list[dict[Piece, float]] = [{} for _ in range(scale.columns)]
    for mark in marks:
        start, end = (min(max(0.0, (tick - since) / each), scale.columns) for tick in (mark.start, mark.end))
        for column in range(int(start), min(int(end) + 1, scale.columns)):
            share, kind = min(end, column + 1) - max(start, column), Piece(mark.letter, mark.fill)
            if share > 0:
                found[column][kind] = found[column].get(kind, 0.0) + share
    for shares in found:
        free = 1 - sum(shares.values())
        if free > 1e-9:
            shares[idle] = free
    return found


def _idle(coloured: bool) -> Piece:
    return Piece(" " if coloured else IDLE)
