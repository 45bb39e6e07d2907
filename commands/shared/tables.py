"""Tables on the terminal, with the least important columns left out, and this noted, until a table fits the width."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from commands.shared.console import console, width
from commands.shared.encoding import encodable

_NO_TERMINAL = 120  # columns where nothing tells how many there are
_ALL = 250  # columns in which every table has room for all that it says
_PROSE = 28  # columns: what a cell of text may be wrapped to
_FRAME = 3  # columns that a table's lines and spaces take beside each column, and one more in all


# Text with colours of its own stays as it is; other text is written as the encoding of standard output allows.
Cell = str | Text


class Column(NamedTuple):
    """A table's column; `header` is its title, and a `numeric` one is aligned to the right.

    While a table is too wide, the column with the highest `leave_out` is left out; one with 0 never is.
    """

    header: str
    numeric: bool = False
    leave_out: int = 0


def table(
    title: str,
    columns: Sequence[Column | tuple[str, bool]],
    rows: Sequence[Sequence[Cell]],
    bold: Sequence[int] = (),
) -> None:
    """Print a table under its title; rows whose index is in `bold` are bold.

    If it is too wide, the least important columns are left out, and a line names them.
    """
    room = room_of_tables()
    named, cells = _encodable(columns), _texts(rows)
    shown = fitting(named, cells, room)
    made = Table(header_style="bold")
    for n in shown:
        made.add_column(_header(named[n], [row[n] for row in cells]), justify="right" if named[n].numeric else "left",
                        no_wrap=named[n].numeric, min_width=_least(named[n], [row[n] for row in cells]))  # fmt: skip
    for index, row in enumerate(rows):
        drawn = (cell if isinstance(cell := row[n], Text) else Text(cells[index][n]) for n in shown)
        made.add_row(*drawn, style="bold" if index in bold else None)
    # Where even the columns that must be there are wider, lines are longer than the terminal: a number cut short
    # would mislead.
    out = console(max(room, _wide(named, cells, shown)))
    out.print(Text(encodable(title), style="bold"), soft_wrap=width() is None)
    out.print(made)
    left = [" ".join(named[n].header.split()) for n in range(len(named)) if n not in shown]
    if left:
        print(f"left out in {room} columns: {', '.join(left)}; COLUMNS={_ALL} or --json has them")


def room_of_tables() -> int:
    """Return the columns that a table may take: those of the terminal, or that COLUMNS says, else 120."""
    return width() or _NO_TERMINAL


def spare(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], room: int, column: int) -> int | None:
    """Return the characters left over in a table `room` characters wide, for the column of index `column` to grow by.

    0 if even those never left out do not fit; None if that column is left out.
    """
    named, cells = _encodable(columns), _texts(rows)
    shown = fitting(named, cells, room)
    return max(0, room - _wide(named, cells, shown)) if column in shown else None


def _encodable(columns: Sequence[Column | tuple[str, bool]]) -> list[Column]:
    return [Column(encodable(column[0]), *column[1:]) for column in columns]


def _texts(rows: Sequence[Sequence[Cell]]) -> list[list[str]]:
    return [[cell.plain if isinstance(cell, Text) else encodable(cell) for cell in row] for row in rows]


def fitting(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return the indices of the columns shown, ascending.

    The least important are dropped until the others fit in `room` characters. Columns that may not be dropped stay,
    even if they do not fit.
    """
    shown = list(range(len(columns)))
    while _wide(columns, cells, shown) > room:
        last = max(shown, key=lambda n: columns[n].leave_out)
        if columns[last].leave_out <= 0:
            break
        shown.remove(last)
    return shown


def _wide(columns: Sequence[Column], cells: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    """Return the least width, in characters, at which a table with these columns reads well; `cells` are its rows.

    `shown` are the indices of the columns that are not left out.
    """
    return 1 + sum(_FRAME + _least(columns[n], [row[n] for row in cells]) for n in shown)


def _least(column: Column, cells: Sequence[str]) -> int:
    """Return the least width of a column: numbers and short text stay on one line."""
    longest = max((Text(line).cell_len for cell in cells for line in cell.splitlines()), default=0)
    unbroken = longest if column.numeric else min(longest, _PROSE)
    return max(unbroken, *(Text(line).cell_len for line in _header(column, cells).splitlines()), 1)


def _header(column: Column, cells: Sequence[str]) -> str:
    """Return the header, wrapped between words to about the width of the cells."""
    longest = max([12, *(Text(line).cell_len for cell in cells for line in cell.splitlines())])
    lines = [part for line in column.header.splitlines() for part in textwrap.wrap(line, longest,
             break_long_words=False, break_on_hyphens=False)]  # fmt: skip
    return "\n".join(lines)
