"""Cells on a Dask cluster: a scheduler and workers in processes of their own, over TCP; one worker is killed."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer

import pytest

from pipesched.errors import BadInput
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import State
from solver.limits import Limits
from solver.sweeps.cluster import _Asked
from solver.sweeps.run_sweep import Moment, Options, run_sweep
from tests.support.command_forks import forked
from tests.support.forks import Fork
from tests.support.later import needs
from tests.support.sweeps import hard, sweep

needs("distributed")

# Cells that take their time limit: far from their bound for longer than any test waits.
HARD = hard()


DASK = """
import os, runpy, sys
os.environ["DASK_DISTRIBUTED__ADMIN__LOG_LENGTH"] = "0"
runpy.run_module("distributed.cli." + sys.argv.pop(1), run_name="__main__")
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[Fork]]]:
    """The address of a scheduler on a free port, and its two workers of one thread."""
    file = tmp_path / "scheduler.json"
    own = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file))
    processes, until = [forked(DASK, tmp_path, "dask_scheduler", *own)], time.monotonic() + 120
    while not file.exists() and time.monotonic() < until:
        time.sleep(0.1)
    address = json.loads(file.read_text())["address"]
    assert address.startswith("tcp://")
    worker = ("dask_worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
    processes += [forked(DASK, tmp_path, *worker, "--local-directory", str(tmp_path / name)) for name in ("one", "two")]
    try:
        yield address, processes[1:]
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_worker_killed_in_the_middle_loses_nothing(cluster: tuple[str, list[Fork]], tmp_path: Path) -> None:
    from solver.sweeps.cluster import Cluster

    address, workers = cluster
    of = sweep("transfer=0..5", document=HARD)
    executor = Cluster(address)
    executor._client.wait_for_workers(2, timeout=120)
    assert executor.slots == 2
    finished: list[int] = []

    def report(moment: Moment) -> None:
        if moment.last is None:
            return
        finished.append(moment.last.cell.number)
        if len(finished) == 2:  # both are at work on the next ones
            workers[0].send_signal(signal.SIGKILL)

    try:
        with Store(tmp_path / "s.sqlite") as store:
            found = run_sweep(of, store, executor, Options(Limits(seconds=0.4, workers=1)), report)
            assert [store.solves(cell.key) for cell in of.cells] == [1] * 6
    finally:
        executor.close()
    assert workers[0].wait() == -signal.SIGKILL and workers[1].poll() is None
    assert sorted(finished) == list(range(6)) and found.count(State.FEASIBLE) == 6
    assert all(row.outcome and row.outcome.schedule for row in found.rows)


def test_a_sweep_that_is_stopped_keeps_what_its_cells_have_found(
    cluster: tuple[str, list[Fork]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from solver.sweeps import cluster as module
    from solver.sweeps.cluster import Cluster

    monkeypatch.setattr(module, "_STOP_SECONDS", 120)  # the workers may be busy
    of, stop = sweep("transfer=0..3", document=HARD), Event()
    executor = Cluster(cluster[0])
    executor._client.wait_for_workers(2, timeout=120)
    began = Timer(3, stop.set)  # two run, two wait
    try:
        with Store(tmp_path / "s.sqlite") as store:
            began.start()
            found = run_sweep(of, store, executor, Options(Limits(seconds=300, workers=1)), stop=stop)
    finally:
        executor.close()
    kept = [row.outcome for row in found.rows if row.outcome is not None]
    assert not [row.reason for row in found.rows if row.state is State.FAILED]
    assert found.interrupted and len(kept) == 2 and not any(one.finished for one in kept)
    assert all(one.schedule for one in kept)


def test_a_scheduler_that_does_not_answer_asks_no_cell_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def __init__(self, name: str) -> None: ...

        def is_set(self) -> bool:
            raise OSError("no answer")

    monkeypatch.setattr("distributed.Event", Silent)
    assert not _Asked("an event").is_set()


def test_no_scheduler_is_one_line() -> None:
    from solver.sweeps import cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "_CONNECT_SECONDS", 0.5)
        with pytest.raises(BadInput, match=r"--cluster: found no scheduler at tcp://127\.0\.0\.1:9 ") as refused:
            cluster.Cluster("tcp://127.0.0.1:9")
        with pytest.raises(BadInput, match="found no scheduler at nonsense:"):
            cluster.Cluster("nonsense://x")
    assert "\n" not in str(refused.value)
