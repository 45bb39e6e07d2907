"""The files that a reader passes from a problem file to the first row of its exact model, in the order of their calls.

    python -m benchmarks.first_row [examples/start.yaml]

A file counts if one of its functions runs; a return is a call into a file that was left before.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

from ortools.sat.python.cp_model import CpModel

from formulations.exact.exact_model import ExactModel
from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.files.problem_file import read_problem

ROOT = Path(__file__).resolve().parents[1]
_ROWS = tuple(name for name in dir(CpModel) if name.startswith("add"))
_NOT_OURS = ("benchmarks/", ".venv/")  # this module, and libraries where go.py installs them
_MOST = 10**6  # ticks: more than any schedule of an example takes


class _FirstRow(BaseException):
    """Raised in place of the first row."""


class Walk(NamedTuple):
    """The files of a walk from the repository's root, with the number of calls into each, and the returns."""

    files: dict[str, int]
    returns: int


def first_row(path: Path) -> Walk:
    """Read a problem file and make its exact model, up to the first row.

    Modules and registries are loaded by a walk before, whose calls do not count.
    """
    _walk(path)
    return _walk(path)


@cache
def _name(file: str) -> str:
    """Return the path of one of our files from the repository's root; "" for any other file."""
    path = Path(file)
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    return "" if name.startswith(_NOT_OURS) else name


def _walk(path: Path) -> Walk:
    files, returns, last = dict[str, int](), 0, ""

    def call(frame: FrameType, event: str, _: object) -> None:
        nonlocal returns, last
        name = _name(frame.f_code.co_filename) if event == "call" else ""
        if name:
            returns += name in files and name != last
            files[name] = files.get(name, 0) + 1
            last = name

    def stop(*_: object) -> None:
        sys.setprofile(None)
        raise _FirstRow

    rows: dict[str, Any] = dict.fromkeys(_ROWS, stop)
    with patch.multiple(CpModel, **rows):
        sys.setprofile(call)
        try:
            ExactModel(jobs_of(read_problem(path)), _MOST, 0)
        except _FirstRow:
            pass
        finally:
            sys.setprofile(None)
    return Walk(files, returns)


if __name__ == "__main__":
    found = first_row(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "examples" / "start.yaml"))
    for name, calls in found.files.items():
        print(f"{calls:6} {name}")
    print(f"{len(found.files)} files, {found.returns} returns")
