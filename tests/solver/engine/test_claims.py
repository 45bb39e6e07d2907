"""Bounds that a part claims in its slices: none whose check does not end in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.deadline import ask
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.engine import claims
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.engine.slices import Slice
from solver.limits import Limits
from tests.support.makers import problem


def _search(limits: Limits) -> Search:
    search = Search(problem(3, 6), limits, lambda _: None, Event(), ENGINE)
    search.offer_order(sequential(search.problem))
    return search


def _slice(search: Search, seconds: float) -> Slice:
    """One of which so many seconds are for finding."""
    return Slice(search.clock, search.clock.seconds, 2 * seconds)


@pytest.mark.parametrize("late", [False, True])
def test_a_bound_whose_check_does_not_end_in_time_is_not_claimed(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace(ENGINE, bounds=AnalyticBounds(load_only=True))
    search = Search(problem(3, 6, memory={"capacity": 2}), Limits(seconds=60.0), lambda _: None, Event(), engine)
    before = search.incumbent.lower_bound
    found = [one for one in certificates(search.problem, search.problem.objective) if one.value_ticks > before][:1]
    assert found

    def check(*given: Any) -> Any:
        while late:
            ask()
            sleep(0.01)
        return check_bound(*given)

    monkeypatch.setattr(claims, "check_bound", check)
    monkeypatch.setattr(claims, "_PARAMS", replace(claims._PARAMS, extra_seconds=-59.0, shortest_timed=-59.0))
    started = monotonic()
    claims.claim_found(search, iter(found))
    assert monotonic() - started < 30
    assert (search.incumbent.lower_bound > before) == (not late)
    assert not search.incumbent.state.notes


def _bounds_of(*values: int) -> Iterator[Certificate]:
    """Made up: claims of these values."""
    for value in values:
        yield Certificate(f"bound {value}", value, "made up")


def _claimed(search: Search, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    claimed: list[int] = []
    monkeypatch.setattr(claims, "claim", lambda _, found: claimed.extend(one.value_ticks for one in found))
    return claimed


@pytest.mark.parametrize(("allowed", "looked_for"), [(0.0, [1, 2, 3]), (0.99, [1])])
def test_no_bound_is_looked_for_within_the_gap_asked_for(
    allowed: float, looked_for: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = _search(Limits(seconds=20, workers=1, gap=allowed))
    claimed = _claimed(search, monkeypatch)
    claims.claim_found(search, _bounds_of(1, 2, 3))
    assert claimed == looked_for


def test_a_bound_whose_check_would_take_too_long_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    search, now = _search(Limits(seconds=60, workers=1)), [0.0]
    claimed = _claimed(search, monkeypatch)

    def bounds() -> Iterator[Certificate]:
        for certificate, seconds in zip(_bounds_of(1, 2, 3), (0.0, 0.0, 24.0), strict=True):
            now[0] += seconds
            yield certificate

    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: now[0]))
    claims.claim_found(search, bounds())
    assert claimed == [1, 2]


@pytest.mark.parametrize(("check_takes", "in_turn"), [(0.0, [[1, 2]]), (1.2, [[1, 2], [3]]), (3.0, [[1, 2]])])
def test_a_check_that_took_some_time_says_whether_the_next_one_fits(
    check_takes: float, in_turn: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    search, claimed = _search(Limits(seconds=60, workers=1)), list[list[int]]()
    now = [0.0]

    def bounds() -> Iterator[Certificate]:
        for certificate, seconds in zip(_bounds_of(1, 2, 3), (0.1, 1.0, 22.0), strict=True):
            now[0] += seconds
            yield certificate

    def claim(_: Search, found: list[Certificate]) -> None:
        claimed.append([one.value_ticks for one in found])
        now[0] += check_takes

    monkeypatch.setattr(claims, "claim", claim)
    monkeypatch.setattr(claims, "time", SimpleNamespace(monotonic=lambda: now[0], thread_time=lambda: now[0]))
    claims.claim_found(search, bounds())
    assert claimed == in_turn


def test_a_slice_goes_on_where_the_one_before_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    search, asked = _search(Limits(seconds=60, workers=1)), list[int]()
    claimed = _claimed(search, monkeypatch)

    def bounds(stop: Event, _: int) -> Iterator[Certificate]:
        for one in _bounds_of(1, 2, 3):
            yield one
            asked.append(int(one.value_ticks))
            until = monotonic() + 0.3
            while not stop.is_set() and monotonic() < until:
                sleep(0.01)

    work = claims.claimed(search, bounds)
    next(work)
    work.send(_slice(search, 0.1))
    assert claimed == [1] == asked
    with pytest.raises(StopIteration):
        work.send(_slice(search, 10.0))
    assert claimed == [1, 2, 3] == asked


def test_work_that_is_closed_ends_where_it_asks_for_a_stop() -> None:
    search, ended = _search(Limits(seconds=60, workers=1)), Event()

    def bounds(stop: Event, _: int) -> Iterator[Certificate]:
        while not stop.is_set():
            sleep(0.01)
        ended.set()
        yield from ()

    work = claims.claimed(search, bounds)
    next(work)
    work.send(_slice(search, 0.1))
    assert not ended.is_set()
    work.close()
    assert ended.is_set()


def test_an_error_in_a_slice_is_that_of_the_slice() -> None:
    def bounds(_: Event, __: int) -> Iterator[Certificate]:
        yield from _bounds_of(1)
        raise ValueError("no bound")

    work = claims.claimed(_search(Limits(seconds=60, workers=1)), bounds)
    next(work)
    with pytest.raises(ValueError, match="no bound"):
        work.send(_slice(_search(Limits(seconds=60, workers=1)), 1.0))
