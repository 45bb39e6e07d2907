"""Report sections on the origin of a result: the input file as typed, and the command to reproduce the result."""

from __future__ import annotations

import os
import platform
import shlex
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from commands.shared.versions import versions
from plots.html.parts import Code, Paragraph, Part, Section, Table

_MOST = 200_000  # letters of a file that a report shows


def typed(path: str) -> str | None:
    """Return the text of the input file at `path`; None if it is no regular file (a pipe), or not readable as UTF-8.

    To be called before the search, so that it is the text that was searched.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig") if Path(path).is_file() else None
    except (OSError, ValueError):
        return None


def file_section(title: str, text: str | None, path: str) -> Section:
    """Return the report section, called `title`, with the text of the input file at `path` as the user typed it.

    It is cut if it is very long. `text` is None for a file that cannot be read twice (a pipe); the section then says
    so.
    """
    if text is None:
        return Section(title, [Paragraph(f"{path} is no file that can be read again.")])
    parts: list[Part] = [Paragraph(f"{path}, as it was when the command began:"), Code(text[:_MOST])]
    if len(text) > _MOST:
        parts.append(Paragraph(f"The first {_MOST:,} of its {len(text):,} letters."))
    return Section(title, parts)


def reproduce_section(args: Namespace, seconds: float) -> Section:
    """Return the report section with the command line, versions, limits and machine; the search took `seconds`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    workers = f"{args.workers}" if args.workers else f"{cores} (all cores)"
    rows = [
        ["versions", versions()],
        ["seed", str(args.seed)],
        ["workers", workers],
        ["time limit", f"{args.time_limit:g} s"],
        ["time taken", f"{seconds:.1f} s"],
        ["machine", f"{platform.system()} {platform.machine()}, {cores} cores"],
        ["made", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")],
    ]
    caveat = (
        "The bound and the schedule hold wherever they are checked. A search that ends with a proof ends with the same "
        "value every time; one that a time limit ends depends on how fast the machine is."
    )
    return Section(
        "How to reproduce",
        [Code(shlex.join(["pipesched", *args.words])), Table([("", False), ("", False)], rows), Paragraph(caveat)],
    )
