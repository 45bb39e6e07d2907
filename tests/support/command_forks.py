"""The command line in processes forked from one that has solved a problem and written all files of the answer."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from tests.support.forks import ROOT, Fork, Server, started

_LOADS = """
import contextlib, io, tempfile
from pathlib import Path
from commands.main import main

with tempfile.TemporaryDirectory() as folder:
    small = Path(folder, "small.yaml")
    small.write_text("devices: 2\\nmicrobatches: 3\\ntimes: {forward: 1, backward: 1, weight: 1}\\n")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        main(["solve", str(small), "-o", folder, "--workers", "1"])
"""
COMMAND = "from pipesched.__main__ import main; main()"


@cache
def _server() -> Server:
    return started(_LOADS)


def forked(code: str, folder: Path, *words: str) -> Fork:
    """Python code in a folder, whose standard output and standard error are pipes; `words` follow its name."""
    return _server().fork_with_pipes(code, ["pipesched", *words], folder, os.environ | {"PYTHONPATH": str(ROOT)})


def command(folder: Path, *words: str) -> Fork:
    """The command of these words, as `python -m pipesched` runs it."""
    return forked(COMMAND, folder, *words)
