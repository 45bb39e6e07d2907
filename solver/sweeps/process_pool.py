"""Executor of a sweep's cells on processes of this machine.

The cell of a process that dies is tried again, and no process outlives the parent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for
from threading import Thread
from typing import Any

from pipesched.ending_signals import ending_signals
from solver.sweeps.executor import Ended, run_task
from solver.sweeps.solve_cell import Task

# A fresh interpreter: a copy of this one would hold its threads' locks, and the store's file.
_CONTEXT = multiprocessing.get_context("spawn")
_stopping: Any = None  # of a worker
_ASKED_WITHIN = 2.0  # seconds


class ProcessPool:
    """Executor on `slots` processes, each of which solves one cell at a time."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._stopping = _CONTEXT.Event()
        self._pool = self._started()
        self._futures: dict[Future[Ended], str] = {}

    @property
    def running(self) -> frozenset[str]:
        return frozenset(self._futures.values())

    def submit(self, task: Task) -> None:
        try:
            future = self._pool.submit(_run, task)
        except BrokenProcessPool:
            self._pool = self._started()
            future = self._pool.submit(_run, task)
        self._futures[future] = task.key

    def ended(self, seconds: float) -> list[Ended]:
        done = wait(self._futures, seconds, FIRST_COMPLETED).done
        found = [self._of(future) for future in done]
        for future in done:
            del self._futures[future]
        if any(one.lost for one in found):
            self._pool.shutdown(wait=False)
            self._pool = self._started()
        return found

    def stop(self) -> None:
        self._stopping.set()

    def close(self) -> None:
        self._stopping.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.slots, _CONTEXT, _begin, (self._stopping,))

    def _of(self, future: Future[Ended]) -> Ended:
        try:
            return future.result()
        except BrokenProcessPool:
            return Ended(self._futures[future], None, "the process that solved it was ended from outside", lost=True)
        except Exception as error:  # what could not be sent to the process or back
            return Ended(self._futures[future], None, f"{type(error).__name__}: {error}")


def _begin(stopping: Any) -> None:
    """Prepare a process of the pool: it ignores Ctrl-C, which is for the parent, and ends when the parent dies.

    `stopping` is the event by which the parent asks all cells to end.
    """
    global _stopping  # noqa: PLW0603 - what a process of a pool is given at its start can be kept nowhere else
    _stopping = stopping
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for each in ending_signals():
        if each != signal.SIGINT:
            signal.signal(each, lambda *_: Thread(target=_end_unless_asked, daemon=True).start())
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_unless_asked() -> None:
    """End the process unless the parent asks it to stop within two seconds; runs after SIGTERM or SIGHUP.

    Either may reach all processes at once; the parent then asks them to end with the best found so far.
    """
    until = time.monotonic() + _ASKED_WITHIN
    while time.monotonic() < until:
        if _stopping.is_set():
            return
        time.sleep(_ASKED_WITHIN / 20)
    os._exit(1)


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def _run(task: Task) -> Ended:
    return run_task(task, _stopping)
