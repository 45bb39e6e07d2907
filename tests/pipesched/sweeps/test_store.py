"""The store of a sweep: what is kept is exact and is there after any end of the program; other files are refused."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from pipesched.errors import BadInput
from pipesched.results.solution import Status
from pipesched.sweeps.outcome import Effort, outcome_from
from pipesched.sweeps.store import FORMAT, Store
from tests.support.sweeps import outcome, published, sweep

ROOT = Path(__file__).resolve().parents[3]


def test_what_is_kept_is_read_exactly(tmp_path: Path) -> None:
    whole = outcome(10, 9, published=(published("1f1b", 11.25, 2),), schedule=b"\0data", choice={"chunks": 2})
    known = replace(whole, value=Fraction(10, 3), span=Fraction(1, 7), notes=("a note",), idle_ratio=0.1)
    assert outcome_from(known.document(), known.schedule) == known
    with Store(tmp_path / "s.sqlite") as store:
        assert store.get("k") is None
        store.keep("k", known)
    with Store(tmp_path / "s.sqlite") as store:
        assert store.get("k") == known
        assert store.known(["k", "other", "k"]) == {"k": known}
    database = sqlite3.connect(tmp_path / "s.sqlite")
    text = database.execute("SELECT value, lower_bound FROM results").fetchone()
    database.close()
    assert text == ("10/3", "9")  # fractions, not floats
    assert [path.name for path in tmp_path.iterdir()] == ["s.sqlite"]


def test_a_second_result_never_loses_what_the_first_had(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.keep("k", replace(outcome(10, 5), effort=Effort(60, 1, 0, 0.0), schedule=b"ten"))
        store.keep("k", replace(outcome(12, 8), schedule=b"twelve"))
        known = store.get("k")
        assert known is not None
        assert (known.value, known.lower_bound, known.schedule, known.effort.seconds) == (10, 8, b"ten", 60)
        store.keep("k", outcome(8, 4))
        assert store.get("k") == replace(store.keep("k", outcome(20, 1)), schedule=None)
        assert (known := store.get("k")) is not None and known.status is Status.OPTIMAL
        assert store.solves("k") == 4


@pytest.mark.parametrize("proved_first", [False, True])
def test_a_proof_that_there_is_no_schedule_is_kept(proved_first: bool, tmp_path: Path) -> None:
    proved = outcome(None)
    unknown = replace(proved, status=Status.UNKNOWN, reason="time limit")
    with Store(tmp_path / "store.db") as store:
        for one in (proved, unknown) if proved_first else (unknown, proved):
            store.keep("a", one)
        assert store.get("a") == proved


def test_what_was_interrupted_or_follows_is_no_solve(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        store.keep("k", replace(outcome(10, 5), finished=False))
        store.keep("k", outcome(9, 5), solved=False)
        assert store.solves("k") == 0
        store.keep("k", outcome(9, 6))
        assert store.solves("k") == 1
        assert (known := store.get("k")) is not None and known.finished


def test_a_sweep_is_entered_once(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as store:
        one = store.enter(sweep("memory=1,2"))
        assert store.enter(sweep("memory=1,2")) == one
        assert store.enter(sweep("memory=1..3")) != one
    rows = sqlite3.connect(tmp_path / "s.sqlite").execute("SELECT sweep, number, at FROM cells").fetchall()
    assert len(rows) == 5
    assert rows[1] == (one, 1, '{"memory": 2}')


def test_a_sweep_of_an_older_version_is_entered_once(tmp_path: Path) -> None:
    """Its key is of the keys of its cells, which later versions form otherwise."""
    path = tmp_path / "s.sqlite"
    with Store(path) as store:
        one, other = store.enter(sweep("memory=1,2")), store.enter(sweep("memory=1..3"))
    older = sqlite3.connect(path)
    older.execute("UPDATE sweeps SET key = 'of an older version ' || id")
    older.commit()
    older.close()
    with Store(path) as store:
        assert store.enter(sweep("memory=1..3")) == other
        assert store.enter(sweep("memory=1,2")) == one
        assert store.enter(sweep("memory=1,2")) == one
    assert sqlite3.connect(path).execute("SELECT count(*) FROM sweeps").fetchone() == (2,)


def test_other_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("devices: 2\n" * 100)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (a)")
    other.commit()
    with Store(tmp_path / "newer"):
        pass
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute(f"PRAGMA user_version = {FORMAT + 1}")
    newer.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("text", "other", "newer", "."):
        with pytest.raises(BadInput, match="found"):
            Store(tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_two_at_a_time_wait_for_each_other(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite") as one, Store(tmp_path / "s.sqlite") as other:
        for n in range(20):
            (one if n % 2 else other).keep(f"k{n}", outcome(n + 1))
        assert one.get("k18") == other.get("k18") == outcome(19)


# Keeps cells as fast as it can, and says which are kept; imports no solver.
_WRITER = """
import sys
from tests.support.sweeps import outcome
from pipesched.sweeps.store import Store
store, first = Store(sys.argv[1]), int(sys.argv[2])
for n in range(first, first + 100_000):
    store.keep(f"k{n}", outcome(n + 1, schedule=bytes(2000)))
    print(n, flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_kill_9_at_any_moment_loses_nothing_that_was_kept(tmp_path: Path) -> None:
    path, said, chance = tmp_path / "s.sqlite", set[int](), random.Random(7)
    for kill in range(2):
        command = [sys.executable, "-c", _WRITER, str(path), str(kill * 100_000)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(chance.randint(3, 30)):  # of them, not of seconds: a slow machine keeps few in any time
            said.add(int(process.stdout.readline()))
        time.sleep(0.01 * chance.random())
        process.send_signal(signal.SIGKILL)
        said |= {int(line) for line in process.stdout.read().split("\n") if line}
        process.wait()
        check = sqlite3.connect(path)
        assert check.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        check.close()
        with Store(path) as store:
            assert store.known(f"k{n}" for n in said) == {f"k{n}": outcome(n + 1, schedule=bytes(2000)) for n in said}
    assert len(said) > 4
