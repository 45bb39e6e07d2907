"""Deadlines, by a clock of the test's own."""

from __future__ import annotations

from itertools import count
from math import inf
from threading import Event

import pytest

from pipesched.deadline import Deadline, TimeLimitReached, ask, asking, expired, within


def after_asks(number: int) -> Deadline:
    """Over once it was asked so often."""
    asks = count()
    return Deadline(number, clock=lambda: next(asks))


def steps(found: list[int], every: int = 1) -> None:
    """A loop without an end."""
    for step in asking(count(), every):
        found.append(step)


def test_expires_at_its_moment_and_at_a_stop() -> None:
    now, stop = [100.0], Event()
    deadline = Deadline.after(10, stop, lambda: now[0])
    assert deadline.left() == 10 and not deadline.expired()
    now[0] = 109
    assert deadline.left() == 1 and not deadline.expired()
    now[0] = 110
    assert deadline.left() == 0 and deadline.expired()
    now[0] = 100
    stop.set()
    assert deadline.left() == 0 and deadline.expired()


def test_what_nothing_interrupts_begins_only_where_it_fits() -> None:
    now = [0.0]
    deadline = Deadline.after(10, None, lambda: now[0])
    assert deadline.fits(9) and not deadline.fits(10)
    now[0] = 5
    assert not deadline.fits(9) and deadline.fits(4)


def test_a_sooner_one_is_never_later_and_has_the_same_stop() -> None:
    now, stop = [0.0], Event()
    deadline = Deadline.after(10, stop, lambda: now[0])
    assert deadline.sooner(3).at == 3 and deadline.sooner(30).at == 10
    stop.set()
    assert deadline.sooner(3).expired()


def test_a_loop_that_asks_ends_at_its_deadline_however_deep_it_is() -> None:
    found: list[int] = []
    assert within(after_asks(5), lambda: [steps(found) for _ in range(3)]) is None
    assert found == [*range(5)]
    found.clear()
    assert within(after_asks(5), lambda: steps(found, every=10)) is None
    assert found == [*range(50)]


def test_work_in_time_gives_its_result_or_its_error() -> None:
    assert within(after_asks(9), lambda: sum(asking(range(9)))) == 36
    with pytest.raises(ValueError, match="no seven"):
        within(Deadline(inf), lambda: int("no seven"))


def test_work_that_never_asks_runs_to_its_end() -> None:
    """Nothing is thrown into it, so what it has built up is whole; the loops around it end after it."""
    assert within(Deadline(0.0), lambda: [*range(9)]) == [*range(9)]
    found: list[int] = []
    assert within(Deadline(0.0), lambda: (found.extend(range(9)), ask())) is None
    assert found == [*range(9)]


def test_nothing_is_asked_outside() -> None:
    ask()
    assert not expired()
    assert [*asking(range(3))] == [0, 1, 2]
    within(after_asks(0), lambda: None)
    ask()


def test_a_stop_leaves_work_a_moment_to_end_by_itself() -> None:
    now, stop, found = [0.0], Event(), list[int]()

    def work() -> str:
        stop.set()
        ask()  # a moment from here on
        now[0] += 0.4
        ask()
        found.append(1)
        now[0] += 0.2
        ask()
        raise AssertionError

    assert within(Deadline(inf, stop, lambda: now[0]), work) is None
    assert found == [1]


@pytest.mark.parametrize("inner", [3, 7, inf])
def test_work_within_work_ends_at_the_sooner_deadline(inner: float) -> None:
    seen: list[int] = []
    now = [0.0]

    def deadline(at: float) -> Deadline:
        return Deadline(at, clock=lambda: now[0])

    def forever() -> None:
        for step in asking(count()):
            seen.append(step)
            now[0] += 1

    def outer() -> str:
        assert within(deadline(inner), forever) is None
        return "goes on"

    assert within(deadline(5), outer) == ("goes on" if inner < 5 else None)
    assert len(seen) == min(5, inner)


def test_no_handler_of_errors_takes_the_end_of_the_time_for_one() -> None:
    def noted() -> str:
        try:
            steps([])
        except Exception:
            return "a defect"
        raise AssertionError

    assert within(after_asks(3), noted) is None
    assert not issubclass(TimeLimitReached, Exception)
