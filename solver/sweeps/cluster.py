"""Executor of a sweep's cells on a Dask cluster: workers solve them, and this process alone writes the store.

A cell is not lost if a worker dies.
"""

from __future__ import annotations

import queue
from threading import Event
from typing import TYPE_CHECKING

from pipesched.errors import BadInput
from pipesched.extras import to_install
from pipesched.version import VERSION
from solver.sweeps.executor import Ended, run_task
from solver.sweeps.solve_cell import Task

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 15
GIVEN_UP = "the cluster gave it up"


class Cluster:
    """Executor on a Dask scheduler, given by its address, which repeats a cell on another worker if the first dies.

    Raises `BadInput` if there is no scheduler at the address or Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        self._client = _connected(address)
        self._futures: dict[str, Future] = {}
        self._done: queue.SimpleQueue[str] = queue.SimpleQueue()

    @property
    def slots(self) -> int:
        """Number of cells that run at a time: one for each thread of the current workers, which may change."""
        threads: int = sum(self._client.nthreads().values())
        return max(1, threads)

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._futures)

    def submit(self, task: Task) -> None:
        # Not pure: a cell that failed is tried again, and asks for more than the scheduler may remember.
        future = self._client.submit(_solve, task, VERSION, pure=False)
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._done.put(task.key))

    def ended(self, seconds: float) -> list[Ended]:
        found: list[Ended] = []
        try:
            found.append(self._of(self._done.get(timeout=seconds)))
            while True:
                found.append(self._of(self._done.get_nowait()))
        except queue.Empty:
            return found

    def stop(self) -> None:
        """Cancel all running cells; their processes on the cluster work on until their time limit."""
        self._client.cancel(list(self._futures.values()), force=True)
        self._futures.clear()

    def close(self) -> None:
        self._client.close(timeout=5)

    def _of(self, key: str) -> Ended:
        future = self._futures.pop(key, None)
        if future is None or future.cancelled():
            return Ended(key, None, GIVEN_UP)
        try:
            found: Ended = future.result(timeout=_CONNECT_SECONDS)
            return found
        except Exception as error:  # such as a worker without pipesched, or one that dies again and again
            return Ended(key, None, f"on the cluster: {type(error).__name__}: {error}", lost=True)


def _connected(address: str) -> Client:
    try:
        from distributed import Client
    except ImportError:
        raise BadInput(
            f"--cluster: found no dask.distributed; allowed: after {to_install('pipesched[cluster]')}"
        ) from None
    try:
        return Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BadInput(
            f"--cluster: found no scheduler at {address} ({reason}); allowed: its address, such as tcp://host:8786"
        ) from None


def _solve(task: Task, version: str) -> Ended:
    """Solve a cell on a worker, if that has the same version of pipesched; else return the failure.

    Another version could return an outcome that this one does not understand.
    """
    if version != VERSION:
        return Ended(task.key, None, f"the worker has pipesched {VERSION}, and the sweep is of {version}", lost=False)
    return run_task(task, Event())
