"""Deadlines, by a clock of the test's own."""

from __future__ import annotations

from threading import Event

from solver.deadline import Deadline


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
