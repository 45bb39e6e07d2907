"""Executors of a sweep's cells: in sequence in this process, on a pool of processes, or on a cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from pipesched.event_when import event_when
from pipesched.sweeps.outcome import Outcome
from solver.sweeps.solve_cell import Task, solve_cell

_POLL = 0.05  # seconds between looks at an event


@dataclass(frozen=True)
class Ended:
    """A cell's task that has ended: its outcome, or None and `failure`, the reason why there is none.

    `lost` is True if the process or worker that ran it is gone. `key` is the cell's.
    """

    key: str
    outcome: Outcome | None
    failure: str = ""
    lost: bool = False


class Executor(Protocol):
    """Interface of an executor, which solves cells in parallel, at most `slots` at a time.

    `running` has the keys of the cells that it is solving.
    """

    @property
    def slots(self) -> int: ...

    @property
    def running(self) -> frozenset[str]: ...

    def submit(self, task: Task) -> None:
        """Begin to solve a cell, in parallel to those running; `ended` returns it when it has been solved."""

    def ended(self, seconds: float) -> list[Ended]:
        """Return the cells that have ended; waits at most `seconds` if there are none.

        An executor in this process solves its cell in this call, however long that takes.
        """

    def stop(self) -> None:
        """Ask all running tasks to end with the best found so far."""

    def close(self) -> None:
        """End all running tasks and free processes or connections; no task may be submitted after it."""


class InTurn:
    """Executor of one cell at a time, in this process; `stopping` is the user's event, which ends the running one."""

    slots = 1

    def __init__(self, stopping: Event) -> None:
        self._stopping, self._tasks = stopping, list[Task]()

    @property
    def running(self) -> frozenset[str]:
        return frozenset(task.key for task in self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def ended(self, seconds: float) -> list[Ended]:  # noqa: ARG002 - a task that runs here takes what it takes
        tasks, self._tasks = self._tasks, []
        return [run_task(task, self._stopping) for task in tasks]

    def stop(self) -> None: ...

    def close(self) -> None: ...


class Settable(Protocol):
    """Interface that the events of threads and of processes share."""

    def is_set(self) -> bool: ...


def run_task(task: Task, stopping: Settable) -> Ended:
    """Solve a cell until it ends or the event `stopping` is set.

    An error is returned as the reason of the failure, so that it does not end the sweep.
    """
    try:
        with event_when(stopping.is_set, _POLL) as stop:
            return Ended(task.key, solve_cell(task, stop))
    except Exception as error:  # whatever it is, the other cells go on
        return Ended(task.key, None, f"{type(error).__name__}: {error}")


def pause(seconds: float) -> None:
    """Wait for at most `seconds`, and never more than .05 s, for use while no task runs."""
    time.sleep(min(seconds, _POLL))
