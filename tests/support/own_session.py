"""A process with child processes, all of which are ended once they make no progress.

Progress is processor time: a group that a busy machine gives little of it may take as long as it needs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.forks import Fork

# A group that waits for itself uses no processor; one on the busiest machine gets more than this share of one.
_LOOK_EVERY, _STILL, _LEAST_SHARE = 5.0, 300.0, 1e-3  # seconds, seconds, processors
# A group that runs in a circle: seconds of processor time, of all processes together.
_MOST_WORK = 1_500.0
_PROCESSES, _TICK = Path("/proc"), os.sysconf("SC_CLK_TCK")


class Ended(NamedTuple):
    """The exit code of a process, and what it wrote to stderr."""

    code: int
    errors: str


def run_in_own_session(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str], still: float = _STILL
) -> Ended:
    """Run a command in a folder with this environment; return its exit code and stderr.

    `subprocess.TimeoutExpired`, with all its processes ended, where these have used no processor for `still` seconds,
    or far more than any group of a test needs.
    """
    with subprocess.Popen(
        command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        return waited_for(process, still)


def waited_for(process: subprocess.Popen[str] | Fork, still: float = _STILL) -> Ended:
    """Wait until the leader of a session ends; it is ended as `run_in_own_session` says."""
    used, since = 0.0, time.monotonic()
    while True:
        try:
            errors = process.communicate(timeout=min(_LOOK_EVERY, still))[1]
            return Ended(process.returncode, errors)
        except subprocess.TimeoutExpired:
            now, work = time.monotonic(), processor_seconds(process.pid)
            if work > used + _LEAST_SHARE * still:
                used, since = work, now
            if now - since > still or work > _MOST_WORK:
                os.killpg(process.pid, signal.SIGKILL)  # the ranks, too
                raise


def processor_seconds(session: int) -> float:
    """Return the processor seconds of the living processes of a session, and of the children that they waited for.

    Needs /proc, as Linux has it; 0.0 elsewhere.
    """
    ticks = 0
    for file in _PROCESSES.glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()  # after the program's name, which may have any text
        except OSError:  # it has ended meanwhile
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICK
