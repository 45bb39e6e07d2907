"""Standard output as a terminal: width, colours, and printing."""

from __future__ import annotations

import os
import sys

from rich.console import Console

_DUMB = ("dumb", "unknown")


class _Console(Console):
    """A console that passes on the error of a closed output, which the command line handles."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(width: int | None = None) -> Console:
    """Return a console for standard output, without escape codes if it is no terminal, or NO_COLOR or TERM=dumb is set.

    `width` is in characters; None for the terminal's.
    """
    return _Console(
        file=sys.stdout, highlight=False, width=width, color_system=None if os.environ.get("NO_COLOR") else "auto"
    )


def coloured() -> bool:
    """Return True if standard output shows colours."""
    return console().color_system is not None


def width() -> int | None:
    """Return the columns of the terminal, or of COLUMNS if standard output is none; None where neither is known."""
    if sys.stdout.isatty():
        return Console().width
    columns = os.environ.get("COLUMNS", "")
    return int(columns) if columns.isdecimal() and int(columns) else None


def redraws() -> bool:
    """Return True if standard error is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in _DUMB
