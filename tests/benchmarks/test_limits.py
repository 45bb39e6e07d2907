"""Seconds of processors of a command whose work is done by its children."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.limits import processor_seconds

# A parent that waits for a child that works until it is ended.
_PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", "while True: pass"])
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system has no /proc")
def test_children_that_still_run_count() -> None:
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-c", _PARENT], start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        used = 0.0
        while used < 0.5 and time.monotonic() < began + 60:
            time.sleep(0.05)
            used = processor_seconds(process.pid, began)
        own = process_of(process.pid)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert used >= 0.5 > own


def process_of(number: int) -> float:
    """The seconds of one process alone."""
    fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
