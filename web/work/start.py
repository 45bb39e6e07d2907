"""Data that the page needs at its start: fields of the form, examples, download formats."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from textwrap import shorten

from pipesched.version import VERSION
from runtime.exporters.restrictions import RESTRICTIONS
from runtime.partitions.catalogue import PARTITION_FORMATS
from web import form
from web.settings import Settings
from web.work import files
from web.work.channel import Channel

# Beside the packages, in the checkout as in a wheel.
_EXAMPLES = Path(__file__).parents[2] / "examples"
_FIRST = "start"
_LONGEST = 300  # characters of a description
_OF_EDITORS = "# yaml-language-server:"  # a comment that names the schema
# The schedules of the first two take longer than the page waits, and the last is of a sweep, which the page has not.
_LEFT_OUT = ("kimi-k2.yaml", "kimi-k2-offload.yaml", "memory-frontier.yaml")


def describe(channel: Channel, settings: Settings) -> None:
    """Send the page's start data, as a message of kind "start".

    It has `version`, `form`, `examples`, `formats`, `targets`, the names of runtimes for a `problem` and a `plan`, and
    `limits` of this server.
    """
    channel.send(
        "start",
        {
            "version": VERSION,
            "form": form.groups(),
            "examples": examples(),
            "formats": files.formats(),
            "targets": {"problem": sorted(RESTRICTIONS), "plan": sorted(PARTITION_FORMATS.names())},
            "limits": {
                "bytes": settings.text_bytes,
                "cells": settings.cells,
                "seconds": settings.seconds,
                "workers": settings.workers,
                "solves": settings.solves,
            },
        },
    )


def examples() -> list[dict[str, str]]:
    """Return the problem `start`, then other problems, then plans, as objects with `name`, `text` and `what`.

    `name` is the path in the folder of examples without its ending, such as `plans/serving`; `text` is the text of the
    file, and `what` the comment at its top, as one line of 300 characters at most.
    """
    files = [*sorted(_EXAMPLES.glob("*.yaml")), *sorted(_EXAMPLES.glob("plans/*.yaml"))]
    found = [
        (path.relative_to(_EXAMPLES).with_suffix("").as_posix(), path.read_text(encoding="utf-8"))
        for path in files
        if path.name not in _LEFT_OUT
    ]
    found.sort(key=lambda one: one[0] != _FIRST)
    return [{"name": name, "what": _comment_at_top(text), "text": text} for name, text in found]


def _comment_at_top(text: str) -> str:
    lines = takewhile(lambda line: line.startswith("#"), text.splitlines())
    text = " ".join(line.lstrip("# ") for line in lines if not line.startswith(_OF_EDITORS))
    return shorten(text, _LONGEST, placeholder=" …")
