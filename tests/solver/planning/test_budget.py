"""The time of a plan search: what it ends, and what it does not."""

from __future__ import annotations

import time
from itertools import count
from threading import Event

import pytest

from pipesched.deadline import asking
from pipesched.files.plan_file import read_plan
from pipesched.results.solution import Status
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.planning.plan import plan
from solver.planning.search.free_orders import FreeOrders


def endless() -> None:
    for _ in asking(count()):
        time.sleep(0.001)


def test_work_that_asks_is_ended_where_the_time_or_the_user_says_so() -> None:
    Budget(Limits(seconds=0.05), Event()).within(endless, 0.0)
    stop = Event()
    stop.set()
    Budget(Limits(seconds=1000), stop).within(endless, 0.0)
    Budget(Limits(seconds=0), stop).within(endless, 0.0)


def test_counted_work_and_what_fits_run_to_their_end() -> None:
    done = list[str]()
    Budget(Limits(workers=1, deterministic=0), Event()).within(lambda: done.append("counted"), 0.0)
    Budget(Limits(seconds=100), Event()).within(lambda: done.append("fits"), 0.0)
    Budget(Limits(seconds=0), Event()).within(lambda: done.append("at once"), 0.0)
    assert done == ["counted", "fits", "at once"]


def test_a_plan_whose_first_step_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,096 micro-batches on 32 devices one step took half a minute, for a limit of 12 seconds."""
    monkeypatch.setattr(FreeOrders, "run", lambda _: endless())
    found = plan(read_plan("examples/plans/slackpipe.yaml"), seconds=0.05)
    assert found.status is Status.UNKNOWN and found.best is None
