"""What is left of a time limit is never less than nothing: limits made of it are no mistakes."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

from solver.cyclic.solve_period import solve_period
from solver.engine.clock import Clock
from solver.limits import Limits
from solver.planning.budget import Budget
from tests.support.makers import problem

LATE = Limits(seconds=0.0)


def test_clocks_and_budgets_end_at_zero() -> None:
    clock, budget = Clock(LATE), Budget(LATE, Event())
    for left in (clock.left(), clock.left(0.3), clock.allowed(), budget.left):
        assert left == 0
        assert replace(LATE, seconds=left).seconds == 0
    assert budget.over()


def test_a_period_is_looked_for_without_any_time() -> None:
    one = problem(2, 4, times={"forward": 2, "backward": 2, "overlapped": 3}, objective="period")
    assert solve_period(one, LATE).lower_bound_ticks > 0
