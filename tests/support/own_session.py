"""A process with children of its own, all of which a test that takes too long ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SECONDS = 300


class Ended(NamedTuple):
    """The exit code of a process, and what it wrote to stderr."""

    code: int
    errors: str


def run_in_own_session(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str]) -> Ended:
    """Run a command in a folder; `subprocess.TimeoutExpired` after five minutes, with all its processes ended."""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            errors = process.communicate(timeout=_SECONDS)[1]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the ranks, too
            raise
    return Ended(process.returncode, errors)
