"""Executor of a sweep's cells on a Dask cluster: workers solve them, and this process alone writes the store.

A cell is not lost if a worker dies.
"""

from __future__ import annotations

import queue
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import uuid4

from pipesched.errors import BadInput
from pipesched.extras import to_install
from pipesched.version import VERSION
from solver.sweeps.executor import Ended, run_task
from solver.sweeps.solve_cell import Task

if TYPE_CHECKING:
    from distributed import Client, Future

_CONNECT_SECONDS = 15
# Between questions of a worker whether its cell is to end, and for what is asked to end.
_ASK_SECONDS, _STOP_SECONDS = 1.0, 30.0
GIVEN_UP = "the cluster gave it up"


class Cluster:
    """Executor on a Dask scheduler, given by its address, which repeats a cell on another worker if the first dies.

    Raises `BadInput` if there is no scheduler at the address or Dask is not installed.
    """

    def __init__(self, address: str) -> None:
        self._client = _connected(address)
        self._stopping = f"pipesched-sweep-{uuid4().hex}"  # name of the scheduler's event that asks cells to end
        self._until: float | None = None  # monotonic time at which cells that were asked to end are given up
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
        future = self._client.submit(_solve, task, VERSION, self._stopping, pure=False)
        self._futures[task.key] = future
        future.add_done_callback(lambda _: self._done.put(task.key))

    def ended(self, seconds: float) -> list[Ended]:
        found: list[Ended] = []
        if self._until is not None and time.monotonic() > self._until:
            self._drop()
        try:
            self._take(self._done.get(timeout=seconds), found)
            while True:
                self._take(self._done.get_nowait(), found)
        except queue.Empty:
            return found

    def stop(self) -> None:
        """Ask all running cells to end; those that have not ended after `_STOP_SECONDS` are dropped."""
        from distributed import Event

        self._until = time.monotonic() + _STOP_SECONDS
        try:
            Event(self._stopping, self._client).set()
        except (OSError, RuntimeError):  # the scheduler is gone
            self._drop()

    def _drop(self) -> None:
        """Cancel all running cells; a worker that still solves one works on until the cell's time limit."""
        self._client.cancel(list(self._futures.values()), force=True)
        self._futures.clear()

    def close(self) -> None:
        self._client.close(timeout=5)

    def _take(self, key: str, found: list[Ended]) -> None:
        """Add the cell of this key to those that have ended, unless it was dropped."""
        future = self._futures.pop(key, None)
        if future is not None:
            found.append(self._of(key, future))

    def _of(self, key: str, future: Future) -> Ended:
        if future.cancelled():
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


class _Asked:
    """Event of a worker, set once the scheduler's event `name` is, which is asked for every `_ASK_SECONDS` at most."""

    def __init__(self, name: str) -> None:
        from distributed import Event

        self._event, self._set, self._next = Event(name), False, 0.0

    def is_set(self) -> bool:
        now = time.monotonic()
        if not self._set and now >= self._next:
            self._next = now + _ASK_SECONDS
            with suppress(OSError, RuntimeError):  # a scheduler that does not answer has asked for nothing
                self._set = self._event.is_set()
        return self._set


def _solve(task: Task, version: str, stopping: str) -> Ended:
    """Solve a cell on a worker, if that has the same version of pipesched; else return the failure.

    Another version could return an outcome that this one does not understand. `stopping` is the name of the event that
    ends the search with the best found so far.
    """
    if version != VERSION:
        return Ended(task.key, None, f"the worker has pipesched {VERSION}, and the sweep is of {version}", lost=False)
    return run_task(task, _Asked(stopping))
