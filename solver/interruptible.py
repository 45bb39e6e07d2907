"""Runs a solver so that it can be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Result = TypeVar("Result")


def run_until(stop: Event, work: Callable[[], Result], interrupt: Callable[[], object]) -> Result:
    """The result of the work, on a thread of its own: Python handles signals on the main one only, and while that runs.

    A stop that is asked for before a solver has begun would be lost, so it is repeated until the work is over.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        search = pool.submit(work)
        while True:
            try:
                return search.result(timeout=0.05)
            except TimeoutError:
                if stop.is_set():
                    interrupt()
            except BaseException:
                interrupt()
                raise
