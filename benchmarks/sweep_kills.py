"""Kills a sweep at random moments and shows that no cell that it reported as done is lost, and none is solved twice.

    python -m benchmarks.sweep_kills --kills 20

The sweep runs as a command of its own on a pool of two processes and is ended by SIGKILL, once its first cell of a run
is done, within a random part of `--within` seconds. After each kill the file must open, pass SQLite's own check, hold
every cell reported with its schedule, and no process may be left. At the end the sweep runs through, and every cell
must have been solved to its end once.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from dataclasses import dataclass
from pathlib import Path

from pipesched.sweeps.cells import Sweep, read_sweep
from pipesched.sweeps.packed import unpack
from pipesched.sweeps.store import Store
from pipesched.validation.validator import validate

_FILE = """
devices: 3
microbatches: 6
times: {forward: 5, backward: 6, weight: 4, transfer: 1}
memory: {capacity: 2, activation: 1, freed_by_backward: 0.4}
objective: span
sweep: {transfer: 0..CELLS, memory: [1, 2]}
"""
_DONE = re.compile(r"\(transfer (\d+), memory (\d+): ")
_PATIENCE = 60  # seconds


@dataclass(frozen=True)
class Found:
    """What came of it: kills, runs that ended by themselves before, cells reported done, and what was wrong."""

    kills: int
    cells: int
    reported_before_last: int
    wrong: tuple[str, ...]


def attack(kills: int, within: float, seed: int, folder: Path, cells: int, seconds: float, at_last: int = 2) -> Found:
    """Kill the sweep so many times, then let it end with so many cells at a time."""
    chance, wrong, reported = random.Random(seed), list[str](), set[tuple[str, str]]()
    (folder / "sweep.yaml").write_text(_FILE.replace("CELLS", str(cells // 2 - 1)))
    sweep, store, made = read_sweep(folder / "sweep.yaml"), folder / "out" / "sweep.sqlite", 0
    for _ in range(kills):
        done, killed = _run(folder, seconds, within * chance.random())
        reported |= done
        wrong += _mistakes(store, sweep, reported)
        made += killed
        if not killed:
            break
    before = len(reported)
    done, _ = _run(folder, seconds, None, at_last)
    wrong += _mistakes(store, sweep, reported | done)
    with Store(store) as known:
        counts = [known.solves(cell.key) for cell in sweep.cells]
    wrong += [f"cell {n} was solved {count} times" for n, count in enumerate(counts) if count != 1]
    return Found(made, len(sweep.cells), before, tuple(wrong))


def _run(folder: Path, seconds: float, kill_after: float | None, jobs: int = 2) -> tuple[set[tuple[str, str]], bool]:
    """The cells that one run reported, by their values; whether it was killed. None of its processes outlives it."""
    command = [sys.executable, "-m", "pipesched", "sweep", "sweep.yaml", "-o", "out", "--jobs", str(jobs)]
    command += ["--time-limit", str(seconds)]
    root = Path(__file__).resolve().parents[1]
    environment = os.environ | {"PYTHONPATH": str(root)}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    done, killed = set[tuple[str, str]](), False
    if kill_after is not None:
        for line in process.stderr:
            done |= {(m[1], m[2]) for m in [_DONE.search(line)] if m}
            if done:
                time.sleep(kill_after)
                killed = process.poll() is None
                process.send_signal(signal.SIGKILL)
                break
    done |= {(m[1], m[2]) for m in _DONE.finditer(process.stderr.read())}
    process.wait()
    until = time.monotonic() + _PATIENCE
    while _left(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _left(process.pid), "processes of a killed sweep go on"
    return done, killed


def _left(session: int) -> bool:
    """Whether any process of the session is there."""
    listed = subprocess.run(["ps", "-eo", "sess=,stat="], capture_output=True, text=True, check=True).stdout
    rows = (line.split() for line in listed.splitlines())
    return any(int(row[0]) == session and not row[1].startswith("Z") for row in rows)


def _mistakes(store: Path, sweep: Sweep, reported: set[tuple[str, str]]) -> list[str]:
    """What is wrong with the file after a run."""
    database = sqlite3.connect(store)
    check = database.execute("PRAGMA integrity_check").fetchone()[0]
    database.close()
    wrong = [] if check == "ok" else [f"SQLite finds the file damaged: {check}"]
    with Store(store) as known:
        for cell in sweep.cells:
            if (str(cell.place["transfer"]), str(cell.place["memory"])) not in reported:
                continue
            found = known.get(cell.key)
            if found is None or not found.finished or found.schedule is None:
                wrong.append(f"cell {cell.number} was reported and is lost")
            elif validate(unpack(found.schedule).timeline):
                wrong.append(f"cell {cell.number} has a schedule that is not valid")
    return wrong


def main() -> int:
    """Attack, print; 1 where anything was wrong."""
    parser = ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--within", type=float, default=1.0, help="seconds after the first cell (default: 1)")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--time-limit", type=float, default=0.6, help="seconds of each cell (default: 0.6)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = attack(args.kills, args.within, args.seed, Path(folder), args.cells, args.time_limit)
    print(f"{found.kills} kills; {found.reported_before_last} of {found.cells} cells were done before the last run")
    print(
        "\n".join(found.wrong) if found.wrong else "no cell lost, none solved twice, no process left, every file sound"
    )
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
