"""Groups of processes that stand still are ended; those that are slow are not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import own_session
from tests.support.own_session import run_in_own_session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# A child that never ends, and a parent that waits for it.
_WAITS = """
import os, signal, sys
child = os.fork()
if child:
    open(sys.argv[1], "w").write(str(child))
    os.waitpid(child, 0)
signal.pause()
"""
# A child that works now and then, three times as long in all as a group may stand still; a byte for every 0.1 s.
_SLOW = """
import os, sys, time
if not os.fork():
    for _ in range(30):
        time.sleep(0.1)
        open(sys.argv[1], "ab").write(b".")
        began = time.process_time()
        while time.process_time() - began < 0.01: pass
    sys.exit()
os.wait()
sys.exit("the last line")
"""


def clock(monkeypatch: pytest.MonkeyPatch, seconds: Callable[[], float]) -> None:
    """Time of the groups, which stands where the machine gives them none."""
    monkeypatch.setattr(own_session, "time", SimpleNamespace(monotonic=seconds))


def test_a_group_that_waits_for_itself_is_ended_with_all_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "child"
    clock(monkeypatch, lambda: time.monotonic() if file.exists() and file.stat().st_size else 0.0)
    with pytest.raises(subprocess.TimeoutExpired):
        run_in_own_session([sys.executable, "-c", _WAITS, str(file)], tmp_path, os.environ, still=0.5)
    state, until = Path(f"/proc/{file.read_text()}/stat"), time.monotonic() + 30
    while not _is_over(state):  # on a busy machine a killed process takes a moment to end
        assert time.monotonic() < until
        time.sleep(0.01)


def _is_over(state: Path) -> bool:
    try:
        return state.read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_slow_group_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "rounds"
    file.touch()
    clock(monkeypatch, lambda: 0.1 * file.stat().st_size)
    code, errors = run_in_own_session([sys.executable, "-c", _SLOW, str(file)], tmp_path, os.environ, still=1.0)
    assert (code, errors) == (1, "the last line\n")
