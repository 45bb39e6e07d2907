"""Run of a solver that can be interrupted."""

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
    """Return the result of `work`, run on a thread of its own, since Python handles signals on the main thread alone.

    Once `stop` is set, or the deadline of the current step is over, `interrupt` is called again and again until the
    work has ended: a call before the solver has begun would be lost. An error of the work is raised here.
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
    """An event that counts as set whenever the condition `holds()` is true; for code that takes a stop event."""

    def __init__(self, holds: Callable[[], bool]) -> None:
        super().__init__()
        self._holds = holds

    def is_set(self) -> bool:
        """True if the condition holds now; later calls may differ."""
        return self._holds()
