"""Runs a solver so that it can be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from pipesched.deadline import expired

Result = TypeVar("Result")

_POLL = 0.05  # seconds between looks at clock and stop


def run_until(stop: Event, work: Callable[[], Result], interrupt: Callable[[], object]) -> Result:
    """The result of the work, on a thread of its own: Python handles signals on the main one only, and while that runs.

    The work is interrupted at the stop and at the deadline of what is under way. What is asked for before a solver has
    begun would be lost, so it is repeated until the work is over.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        search = pool.submit(copy_context().run, work)
        try:
            while not wait([search], _POLL).done:
                if stop.is_set() or expired():
                    interrupt()
        except BaseException:
            while not search.done():
                interrupt()
                wait([search], _POLL)
            raise
        return search.result()


class Asking(Event):
    """An event that is set whenever a condition holds."""

    def __init__(self, holds: Callable[[], bool]) -> None:
        super().__init__()
        self._holds = holds

    def is_set(self) -> bool:
        """Now, which may change."""
        return self._holds()
