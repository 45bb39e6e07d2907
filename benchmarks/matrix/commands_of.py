"""Runs the command line in this process, and says what no command may do."""

from __future__ import annotations

import io
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from commands.main import main
from commands.shared.catalogue import Exit
from runtime.exporters.catalogue import EXPORTERS

# How the note of a defect begins.
DEFECT = "A DEFECT OF PIPESCHED"
_CODES = (Exit.DONE, Exit.NO, Exit.BAD_INPUT, Exit.NOT_FOUND)
# Seconds of one search.
SECONDS = 4


class Ran(NamedTuple):
    """The exit code of a command, what it printed, and what is wrong with that."""

    code: int
    out: str
    err: str
    faults: tuple[str, ...]


def run(*words: str) -> Ran:
    """A command; no traceback, no defect, no other exit code, and a line for what is refused."""
    out, err = io.StringIO(), io.StringIO()
    found: list[str] = []
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = main(list(words))
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        found.append(f"traceback: {type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})")
        code = -1
    printed = out.getvalue() + err.getvalue()
    if "Traceback" in printed:
        found.append(f"traceback printed: {printed[-300:]}")
    found += [f"defect: {line.strip()}" for line in printed.splitlines() if DEFECT in line]
    if code not in (*_CODES, -1):
        found.append(f"exit code {code}")
    if code == Exit.BAD_INPUT and not err.getvalue().strip():
        found.append("refused without a line")
    return Ran(code, out.getvalue(), err.getvalue(), tuple(f"{words[0]}: {one}" for one in found))


def in_a_process(*words: str) -> Ran:
    """The same as a program of its own, as a user starts it."""
    process = subprocess.run([sys.executable, "-m", "pipesched", *words], capture_output=True, text=True, check=False)
    found = ["traceback printed"] if "Traceback" in process.stdout + process.stderr else []
    found += [] if process.returncode in _CODES else [f"exit code {process.returncode}"]
    return Ran(
        process.returncode, process.stdout, process.stderr, tuple(f"{words[0]} as a program: {one}" for one in found)
    )


def of_problem(path: Path, schedule: Path, folder: Path, seconds: float = SECONDS) -> Iterator[Ran]:
    """Every command that takes a problem file or the schedule of one, but for `check`."""
    file, kept, limits = str(path), str(schedule), ("--time-limit", str(seconds), "--workers", "1")
    yield run("solve", file, "-o", str(folder / "out"), "--no-text", "--why-not", *limits)
    yield run("compare", file, "--json", *limits)
    yield run("simulate", file, "--schedule", "1f1b", "-o", str(folder / "one.json"), "--no-text")
    yield run("simulate", kept, "--noise", "5%", "--json")
    yield run("frontier", file, "--points", "3", *limits)
    yield run("pair", file, "--json")
    sweep = ("--set", "microbatches=1,2", "--total-time", str(seconds), "--workers", "1", "--jobs", "1")
    yield run("sweep", file, *sweep, "-o", str(folder / "sweep"), "--store", str(folder / "sweep.sqlite"))
    yield in_a_process("validate", kept, "--json")
    yield from of_schedule(kept, folder)


def of_schedule(kept: str, folder: Path) -> Iterator[Ran]:
    """Commands that show a schedule file, or write it for runtimes."""
    yield run("validate", kept, "--json")
    yield run("plot", kept, "-o", str(folder / "page.html"))
    yield run("plot", kept, "--text")
    for name in EXPORTERS.names():
        yield run("export", kept, "--format", name, "-o", str(folder / f"export-{name}"))


def faults_of(every: Sequence[Ran] | Iterator[Ran]) -> list[str]:
    """Faults of command runs."""
    return [fault for one in every for fault in one.faults]
