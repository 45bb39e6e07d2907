"""Writes a generated table into a page of the docs, between its markers, and ends a benchmark as commands end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole

END = "<!-- end of table -->"


def begin(command: str) -> str:
    """The line before a table, which says how it is made."""
    return f"<!-- table: {command} -->"


def put(page: Path, command: str, table: str) -> None:
    """Replace what stands between the command's marker and the next end; `BadInput` for a page without them."""
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{page}: cannot be read: {error.strerror}") from None
    before, marker, rest = text.partition(begin(command) + "\n")
    _, end, after = rest.partition(END)
    if not marker or not end:
        raise BadInput(f"{page}: found no place for the table; it needs the line {begin(command)} and later {END}")
    write_whole(page, f"{before}{marker}{table.strip()}\n{end}{after}")


def show(page: Path | None, command: str, table: str) -> None:
    """To standard output, and into the page where one is given."""
    print(table)
    if page is not None:
        put(page, command, table)


def link_to(picture: Path, page: Path | None, what: str) -> str:
    """A picture below a table, by the way that leads to it from the page; nothing without a page."""
    return "" if page is None else f"\n\n![{what}]({Path(os.path.relpath(picture, page.parent)).as_posix()})"


def exit_code(job: Callable[[], int]) -> int:
    """What a benchmark returns; 2, after one line, for a mistake in what it was given."""
    try:
        return job()
    except BadInput as mistake:
        print(mistake, file=sys.stderr)
        return 2


def table(head: tuple[str, ...], lines: list[list[str]]) -> str:
    """A markdown table."""
    first, *rest = ("| " + " | ".join(cells) + " |" for cells in (head, *lines))
    return "\n".join((first, "|" + "---|" * len(head), *rest))
