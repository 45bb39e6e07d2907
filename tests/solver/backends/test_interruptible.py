"""Work that is ended in the middle, on threads that wait for other threads."""

from __future__ import annotations

import time
from math import inf
from threading import Event

from solver.backends.interruptible import OutOfTime, run_until, run_within


def _stubborn(seconds: float, over: Event) -> None:
    """Work that goes on for so long, however often it is ended."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            time.sleep(0.01)
        except OutOfTime:
            continue
    over.set()


def test_nothing_goes_on_behind_work_that_was_ended_however_often_its_thread_is() -> None:
    """The inner work ends after the thread that waits for it was ended twice."""
    stop, over, seen = Event(), Event(), list[bool]()

    def outer() -> None:
        try:
            run_within(inf, stop, lambda: _stubborn(1.8, over))
        finally:
            seen.append(over.is_set())

    assert run_within(0.1, stop, outer) is None
    assert seen == [True]


def test_a_solver_has_ended_when_the_work_that_runs_it_has() -> None:
    stop, over, seen = Event(), Event(), list[bool]()

    def outer() -> None:
        try:
            run_until(stop, lambda: _stubborn(1.8, over), lambda: None)
        finally:
            seen.append(over.is_set())

    assert run_within(0.1, stop, outer) is None
    assert seen == [True]
