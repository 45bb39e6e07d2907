"""The time limit and a stop end whatever is under way, also loops that look at neither."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from threading import Event, Timer
from typing import NoReturn

import pytest

from pipesched.results.solution import Status
from solver.backends.background import BackgroundIterator
from solver.backends.interruptible import OutOfTime, run_until, run_within
from solver.bounds.analytic.catalogue import BOUNDS
from solver.construction import list_scheduling as list_schedule
from solver.engine.phases import published
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem

LIMITS = Limits(seconds=1.0, workers=1)


def forever(*_: object) -> NoReturn:
    for _ in count():
        pass
    raise AssertionError


def test_work_that_takes_longer_is_ended() -> None:
    ended = Event()

    def work() -> None:
        try:
            forever()
        except OutOfTime:
            ended.set()
            raise

    assert run_within(0.1, Event(), work) is None
    assert ended.is_set()


def test_a_stop_ends_work() -> None:
    stop = Event()
    Timer(0.1, stop.set).start()
    assert run_within(float("inf"), stop, forever) is None


def test_work_in_time_gives_its_result_or_its_error() -> None:
    assert run_within(60, Event(), lambda: 7) == 7
    with pytest.raises(ValueError, match="no seven"):
        run_within(60, Event(), lambda: int("no seven"))


def test_work_within_work_and_solvers_end_too() -> None:
    stop, interrupted = Event(), Event()

    def solver() -> None:
        stop.set()
        interrupted.wait()

    def nested() -> None:
        run_within(60, Event(), lambda: run_until(Event(), solver, interrupted.set))

    assert run_within(60, stop, nested) is None
    assert interrupted.is_set()


def test_bounds_beside_are_ended() -> None:
    def items() -> Iterator[int]:
        yield 1
        forever()

    background = BackgroundIterator(items())
    background.end(0.05)
    assert list(background.found()) == [1] and background.over


def test_a_published_schedule_that_takes_forever_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "candidate", forever)
    found = solve(problem(2, 3), LIMITS)
    assert found.timeline is not None and not found.candidates


def test_list_schedules_that_take_forever_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_schedule._Run, "orders", forever)
    assert solve(problem(3, 5, memory={"capacity": 2}), LIMITS).timeline is not None


def test_a_bound_that_takes_forever_is_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(BOUNDS["head and tail"]), "certify", forever)
    found = solve(problem(2, 3), LIMITS)
    assert found.status in (Status.OPTIMAL, Status.FEASIBLE)
    assert any("head and tail" in note for note in found.notes)
