"""Tests run on a copy of the repository in which the file has a mistake."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path

# How much longer than its seconds of processor time a run may take.
_PATIENCE = 20
# Loaded once, before the tests of each mutant run in a process of their own.
_LIBRARIES = ("numpy", "numba", "ortools.sat.python.cp_model", "pytest", "matplotlib.figure", "pydantic")


def load_libraries() -> None:
    """Import the libraries that all tests need, so that the process of each mutant has them from its start."""
    for library in _LIBRARIES:
        importlib.import_module(library)


def noticed(copy: Path, file: str, source: str, tests: Sequence[str], seconds: float) -> bool:
    """True if these tests fail in a copy of the repository where the file reads so, or do not end."""
    place = copy / file
    original = place.read_text(encoding="utf-8")
    _write(place, source)
    try:
        return fails(seconds, lambda: _run_tests(copy, tests))
    finally:
        _write(place, original)


def _write(place: Path, source: str) -> None:
    """Write a module without its bytecode, which Python takes for that of any text of the same size and second."""
    place.write_text(source, encoding="utf-8")
    Path(importlib.util.cache_from_source(str(place))).unlink(missing_ok=True)


def fails(seconds: float, run: Callable[[], int]) -> bool:
    """True if this gives another number than 0 in a process of its own, or does not end.

    It is ended after so many seconds of processor time, so that a machine that is busy makes no mutant look noticed.
    """
    process = os.fork()
    if process == 0:
        _run(ceil(seconds), run)
    end = time.monotonic() + _PATIENCE * seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return True


def _run(seconds: int, run: Callable[[], int]) -> None:
    """Run this in this process, which ends with the number that it gives."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
        code = 1
        with suppress(Exception):
            code = run()
    os._exit(code)


def _run_tests(copy: Path, tests: Sequence[str]) -> int:
    """Run them; 0 if they pass. Packages come from the copy."""
    tops = {path.name for path in copy.iterdir() if path.is_dir()}
    for name in [name for name in sys.modules if name.split(".")[0] in tops]:
        del sys.modules[name]
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    import pytest

    return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--assert=plain", *tests]))


def copied(folder: Path) -> Path:
    """A copy of all files of the repository that git knows or does not ignore, and of the code that Numba compiled."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout
    code = Path().glob("[!.]*/**/__pycache__/*.nb[ci]")
    for name in (*filter(Path.is_file, map(Path, listed.splitlines())), *code):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(name, folder / name)
    return folder
