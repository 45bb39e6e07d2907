"""Standard output as a terminal: its width, whether it shows colours, and printing in them."""

from __future__ import annotations

import os
import sys

from rich.console import Console

_DUMB = ("dumb", "unknown")


class _Console(Console):
    """A console that leaves it to the command line to say what a reader that went away means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(width: int | None = None) -> Console:
    """Standard output; no escape codes where it is no terminal, or NO_COLOR or TERM=dumb ask for none."""
    return _Console(
        file=sys.stdout, highlight=False, width=width, color_system=None if os.environ.get("NO_COLOR") else "auto"
    )


def coloured() -> bool:
    """True if standard output shows colours."""
    return console().color_system is not None


def width() -> int | None:
    """The columns there are: the terminal's or, where the output is none, those that COLUMNS tells; None without."""
    if sys.stdout.isatty():
        return Console().width
    told = os.environ.get("COLUMNS", "")
    return int(told) if told.isdecimal() and int(told) else None


def redraws() -> bool:
    """True if standard error is a terminal that can show a line that changes."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in _DUMB
