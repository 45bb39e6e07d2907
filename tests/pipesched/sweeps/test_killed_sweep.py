"""A sweep that is killed at some moment: no cell that it reported as done is lost, and none is solved twice."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipesched.sweeps.cells import Sweep, read_sweep
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.store import Store
from pipesched.validation.validator import validate

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


def run(folder: Path, jobs: int, kill_after: float | None = None) -> set[tuple[str, str]]:
    """The cells that one run reported, by their values; killed so long after the first. No process outlives it."""
    command = [sys.executable, "-m", "pipesched", "sweep", "sweep.yaml", "-o", "out", "--jobs", str(jobs)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    process = subprocess.Popen(
        [*command, "--time-limit", ".2"], cwd=folder, env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    done = set[tuple[str, str]]()
    for line in process.stderr:
        done |= {(m[1], m[2]) for m in [DONE.search(line)] if m}
        if done and kill_after is not None:
            time.sleep(kill_after)
            process.send_signal(signal.SIGKILL)
            break
    done |= {(m[1], m[2]) for m in DONE.finditer(process.stderr.read())}
    process.wait()
    until = time.monotonic() + PATIENCE
    while left(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not left(process.pid), "processes of a killed sweep go on"
    return done


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


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(FILE)
    sweep, store = read_sweep(tmp_path / "sweep.yaml"), tmp_path / "out" / "sweep.sqlite"
    before = run(tmp_path, 2, kill_after=0.1)
    hold(store, sweep, before)
    assert 1 <= len(before) < len(sweep.cells) == 6
    hold(store, sweep, before | run(tmp_path, 1))
    with Store(store) as known:
        assert [known.solves(cell.key) for cell in sweep.cells] == [1] * 6
