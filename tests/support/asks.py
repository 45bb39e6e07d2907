"""The longest stretch of work between two checks of the deadline, in lines of Python run: the same on every machine."""

from __future__ import annotations

import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from pipesched.deadline import Deadline, within

ROOT = Path(__file__).resolve().parents[2]
# Loops over plain lists of less than 20,000 nodes, compiled for more: asked for before each of them.
NOT_COUNTED = ("pipesched/deadline.py", "pipesched/simulation/longest_path.py")


class Stretch(NamedTuple):
    """The number of lines of our own code run between two checks of the deadline, and the line (`file:number`) run most
    often."""

    lines: int
    most: str = ""


def longest(work: Callable[[], object]) -> Stretch:
    """Run some work and return its longest stretch; lines of libraries and of compiled code are not counted."""
    found, lines = Stretch(0), defaultdict[tuple[str, int], int](int)

    def clock() -> float:
        nonlocal found
        count = sum(lines.values())
        if count > found.lines:
            (file, number), _ = max(lines.items(), key=lambda item: item[1])
            found = Stretch(count, f"{Path(file).relative_to(ROOT)}:{number}")
        lines.clear()
        return 0.0

    def count(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            lines[frame.f_code.co_filename, frame.f_lineno] += 1
        return count

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        return count if _ours(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        within(Deadline(inf, threading.Event(), clock), work)
    finally:
        sys.settrace(before)
    clock()
    return found


@cache
def _ours(file: str) -> bool:
    path = Path(file)
    counted = path.is_relative_to(ROOT) and ".venv" not in path.parts
    return counted and path.relative_to(ROOT).as_posix() not in NOT_COUNTED
