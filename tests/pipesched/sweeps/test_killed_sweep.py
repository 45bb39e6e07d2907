"""A sweep that is killed at some moment: no cell that it reported as done is lost, and none is solved twice."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from commands.main import main
from pipesched.sweeps.cells import Sweep, read_sweep
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.store import Store
from pipesched.validation.validator import validate
from tests.support.command_forks import COMMAND, forked

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

FILE = """
devices: 3
microbatches: 6
times: {forward: 5, backward: 6, weight: 4, transfer: 1}
memory: {capacity: 2, activation: 1, freed_by_backward: 0.4}
objective: span
sweep: {transfer: 0..2, memory: [1, 2]}
"""
DONE = re.compile(r"\(transfer (\d+), memory (\d+): ")
PATIENCE = 60  # seconds


SWEEP = ("sweep", "sweep.yaml", "-o", "out", "--time-limit", ".2", "--jobs")


def reported(said: str) -> set[tuple[str, str]]:
    """The cells that a run reported, by their values."""
    return {(found[1], found[2]) for found in DONE.finditer(said)}


# Kills its process .1 s after that has reported a cell: a test that did it might be late, once all cells are solved.
KILLED = f"""
import io, os, signal, sys
from threading import Timer

class Killed(io.TextIOWrapper):
    kill = Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL))

    def write(self, text):
        written = super().write(text)
        if "(transfer " in text and self.kill.ident is None:
            self.kill.start()
        return written

sys.stderr = Killed(io.FileIO(2, "w", closefd=False), write_through=True)
{COMMAND}
"""


def killed(folder: Path) -> set[tuple[str, str]]:
    """The cells that a run with two jobs reported that was killed .1 s after the first; no process outlives it."""
    process = forked(KILLED, folder, *SWEEP, "2")
    assert process.stderr is not None
    said = process.stderr.read()
    assert process.wait() == -signal.SIGKILL
    until = time.monotonic() + PATIENCE
    while left(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left(process.pid), "processes of a killed sweep go on"
    return reported(said)


def left(session: int) -> bool:
    listed = subprocess.run(["ps", "-eo", "sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return any(int(row[0]) == session and not row[1].startswith("Z") for row in rows)


def hold(store: Path, sweep: Sweep, reported: set[tuple[str, str]]) -> None:
    """The file is sound, and every cell reported is in it, with a schedule that is valid."""
    assert sqlite3.connect(store).execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    with Store(store) as known:
        for cell in sweep.cells:
            if (str(cell.place["transfer"]), str(cell.place["memory"])) in reported:
                found = known.get(cell.key)
                assert found is not None and found.finished and found.schedule is not None
                assert validate(unpack(found.schedule).timeline) == []


@pytest.mark.usefixtures("cells_in_turn")
@pytest.mark.usefixtures("pictures_are_empty")
def test_a_killed_sweep_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sweep.yaml").write_text(FILE)
    sweep, store = read_sweep(tmp_path / "sweep.yaml"), tmp_path / "out" / "sweep.sqlite"
    before = killed(tmp_path)
    hold(store, sweep, before)
    assert 1 <= len(before) < len(sweep.cells) == 6
    monkeypatch.chdir(tmp_path)
    assert main([*SWEEP, "1"]) == 0
    hold(store, sweep, before | reported(capsys.readouterr().err))
    with Store(store) as known:
        assert [known.solves(cell.key) for cell in sweep.cells] == [1] * 6
