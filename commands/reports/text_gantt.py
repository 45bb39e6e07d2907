"""Gantt charts drawn with characters for `simulate`, `solve` and `plot` on a terminal."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction, Namespace

from rich.style import Style
from rich.text import Text

from commands.shared.console import coloured, console, width
from commands.shared.encoding import encodable
from pipesched.errors import BadInput
from pipesched.problem.formatting import visible
from pipesched.schedule.drawing.colours import RGB, hexadecimal, ink_on
from pipesched.schedule.timeline import Timeline
from plots.drawing.zoom import Window
from plots.text.gantt import text_gantt
from plots.text.line import Line

_NO_TERMINAL = 80  # columns where nothing tells how many there are
_SHORT = 16  # rows that are shown unasked


def add_text(parser: ArgumentParser) -> None:
    """Add `--text` and `--no-text`, which draw the chart on standard output or do not; None without either."""
    parser.add_argument(
        "--text",
        action=BooleanOptionalAction,
        help=f"draw the schedule with characters (default: on a terminal, up to {_SHORT} rows)",
    )


def refuse_with_json(args: Namespace) -> None:
    """Raise `BadInput` for `--text` together with `--json`."""
    if args.json and args.text:
        raise BadInput("found --text with --json; allowed: one of them")


def show_if_wanted(timeline: Timeline, args: Namespace) -> None:
    """Print the chart if `--text` asks for it, or by default if it is short and goes to a terminal."""
    rows = timeline.problem.devices * len(timeline.problem.streams)
    if sys.stdout.isatty() and rows <= _SHORT if args.text is None else args.text:
        show(timeline)


def show(timeline: Timeline, window: Window | None = None) -> None:
    """Print the chart, whole or a window of it in ticks."""
    room, colours = width() or _NO_TERMINAL, coloured()
    out = console(room)
    for line in text_gantt(timeline, room, colours, window):
        out.print(_in_colours(line), soft_wrap=True)


def _in_colours(line: Line) -> Text:
    return Text.assemble(*((encodable(visible(text)), _style(fill)) for text, fill in line))


def _style(fill: RGB | None) -> Style | str:
    if fill is None:
        return ""
    ink = {"black": "#000000", "white": "#ffffff"}[ink_on(fill)]
    return Style(color=ink, bgcolor=hexadecimal(fill))
