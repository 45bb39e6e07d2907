"""Writes a table of measurements into a page of the docs, between its markers, and ends a benchmark as commands end."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.atomic_write import write_whole
from pipesched.problem.formatting import counted
from pipesched.version import VERSION

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
    before, marker, remainder = text.partition(begin(command) + "\n")
    _, end, after = remainder.partition(END)
    if not marker or not end:
        raise BadInput(f"{page}: found no place for the table; it needs the line {begin(command)} and later {END}")
    write_whole(page, f"{before}{marker}{table.strip()}\n{end}{after}")


def show(page: Path | None, command: str, table: str) -> None:
    """To standard output, and into the page where one is given."""
    print(table)
    if page is not None:
        put(page, command, table)


def exit_code(job: Callable[[], int]) -> int:
    """The job's return value; 2, after one line, for a mistake in its input."""
    try:
        return job()
    except BadInput as mistake:
        print(mistake, file=sys.stderr)
        return 2


def table(head: tuple[str, ...], lines: list[list[str]]) -> str:
    """A markdown table without the columns in which all cells are empty."""
    shown = [n for n, _ in enumerate(head) if not lines or any(line[n] for line in lines)]
    first, *others = ("| " + " | ".join(cells[n] for n in shown) + " |" for cells in (head, *lines))
    return "\n".join((first, "|" + "---|" * len(shown), *others))


def machine(seed: int, workers: int, *others: str) -> str:
    """One line: processor count, system, versions (also of other packages), seed."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("ortools", *others))
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}; Python {platform.python_version()}, "
        f"{libraries}, pipesched {VERSION}; {counted(workers, 'worker')}, seed {seed}"
    )


def in_percent(share: float | None) -> str:
    """`0.28`, or nothing; more digits where two would round a gap to nothing."""
    if share is None:
        return ""
    return f"{100 * share:.2f}" if share == 0 or share >= 5e-5 else f"{100 * share:.1g}"
