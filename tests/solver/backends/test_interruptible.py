"""Solvers on a thread of their own: interrupted at a stop, at a deadline and at an error, and ended before the caller."""

from __future__ import annotations

from math import inf
from threading import Event
from typing import NoReturn

import pytest

from pipesched.deadline import Deadline, ask, expired, within
from solver.backends import interruptible
from solver.backends.interruptible import run_until


class _Solver:
    """Runs until it is interrupted; the first interrupts come before it has begun, and are lost."""

    def __init__(self, lost: int = 0) -> None:
        self._lost, self._interrupted, self.over = lost, Event(), False

    def run(self) -> str:
        self._interrupted.wait()
        self.over = True
        return "best"

    def interrupt(self) -> None:
        self._lost -= 1
        if self._lost < 0:
            self._interrupted.set()


def test_a_stop_interrupts_a_solver_whose_result_counts() -> None:
    solver, stop = _Solver(lost=2), Event()
    stop.set()
    assert run_until(stop, solver.run, solver.interrupt) == "best"


def test_the_deadline_of_what_is_under_way_interrupts_a_solver() -> None:
    solver = _Solver()
    assert within(Deadline(0.0, clock=lambda: 1.0), lambda: run_until(Event(), solver.run, solver.interrupt)) == "best"


def test_the_work_of_the_thread_is_under_the_same_deadline() -> None:
    moment = [0.0]

    def work() -> NoReturn:
        assert not expired()
        moment[0] = 2.0
        ask()
        raise AssertionError

    deadline = Deadline(1.0, clock=lambda: moment[0])
    assert within(deadline, lambda: run_until(Event(), work, lambda: None)) is None


def test_a_solver_has_ended_when_an_error_of_the_waiting_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    solver, waits = _Solver(lost=2), interruptible.wait

    def interrupted(*given: object) -> object:
        monkeypatch.setattr(interruptible, "wait", waits)
        raise KeyboardInterrupt

    monkeypatch.setattr(interruptible, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_until(Event(), solver.run, solver.interrupt)
    assert solver.over


def test_what_the_work_raises_is_raised() -> None:
    def work() -> NoReturn:
        raise TimeoutError("of the work, not of a wait for it")

    with pytest.raises(TimeoutError, match="of the work"):
        within(Deadline(inf), lambda: run_until(Event(), work, lambda: None))
