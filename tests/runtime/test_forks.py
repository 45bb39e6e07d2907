"""Programs forked from a process that has loaded libraries: what they print, how they end, and if that one has ended."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.forks import Server, started


def test_an_ended_process_fails_at_once_with_its_errors(tmp_path: Path) -> None:
    server = started("import sys; sys.exit('no such library')")
    for _ in range(2):  # the first may be asked while it still runs
        with pytest.raises(AssertionError, match="does not answer:\nno such library"):
            server.fork("", ["none"], tmp_path, {})


@pytest.mark.parametrize(
    ("code", "ended", "output", "errors"),
    [
        ("import json, sys; print(sys.argv, json)", 0, "['a', 'b'] <module 'json'", ""),
        ("import sys; sys.exit(3)", 3, "", ""),
        ("import sys; sys.exit('wrong')", 1, "", "wrong\n"),
        ("raise ValueError('no')", 1, "", "Traceback"),
        ("import atexit; atexit.register(print, 'last')", 0, "last\n", ""),
    ],
)
def test_a_program_ends_as_one_of_its_own(
    code: str, ended: int, output: str, errors: str, server: Server, tmp_path: Path
) -> None:
    process = server.fork_with_pipes(code, ["a", "b"], tmp_path, os.environ)
    found = process.communicate(timeout=60)
    assert process.returncode == process.wait() == ended
    assert found[0].startswith(output) and found[1].startswith(errors)
    assert bool(found[0]) == bool(output) and bool(found[1]) == bool(errors)


def test_a_signal_reaches_it(server: Server, tmp_path: Path) -> None:
    process = server.fork_with_pipes(
        "import time; print(1, flush=True); time.sleep(600)", ["waits"], tmp_path, os.environ
    )
    assert process.stdout is not None and process.stdout.readline() == "1\n" and process.poll() is None
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=60) == -signal.SIGKILL


@pytest.fixture(scope="module")
def server() -> Server:
    return started("import json")
