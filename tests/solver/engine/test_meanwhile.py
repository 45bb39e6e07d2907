"""Local search beside a phase that looks for bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from threading import Event
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest

from pipesched.checking.check import check_bound
from pipesched.errors import Disagreement
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import list_schedules, sequential
from solver.engine import meanwhile
from solver.engine import search as search_module
from solver.engine.engine import ENGINE
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.search import Engine, Search
from solver.limits import Limits
from tests.support.makers import problem

Run = Callable[[Any, float, Any], None]


def _search(limits: Limits, engine: Engine = ENGINE) -> Search:
    search = Search(problem(3, 6), limits, lambda _: None, Event(), engine)
    search.offer_order(sequential(search.problem))
    return search


def _fake(search_orders: Run) -> type:
    class Orders:
        def __init__(self, best: Any, others: Any, limits: Limits, done: Callable[[], bool], **_: bool) -> None:
            self.best, self.limits, self.done = best, limits, done

        def run(self, seconds: float, offer: Any) -> None:
            search_orders(self, seconds, offer)

    return Orders


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meanwhile, "_SOON", 0.0)


def test_what_is_found_meanwhile_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, workers = Event(), []

    def run(orders: Any, _seconds: float, offer: Any) -> None:
        workers.append(orders.limits.workers)
        begun.set()
        while not orders.done():
            pass
        offer(next(iter(list_schedules(orders.best.problem))))

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    search = _search(Limits(seconds=60.0, workers=3))
    before = search.incumbent.value
    with meanwhile.improving_meanwhile(search):
        assert begun.wait(30)
    assert before is not None
    assert search.incumbent.value is not None
    assert search.incumbent.value < before
    assert workers == [2]


@pytest.mark.parametrize("limits", [Limits(seconds=60.0, workers=1), Limits(workers=2, deterministic=1.0)])
def test_not_with_one_worker_or_counted_work(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> None:
        raise AssertionError("begun")

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    with meanwhile.improving_meanwhile(_search(limits)):
        pass


def test_a_defect_is_raised_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    def run(*_: Any) -> None:
        begun.set()
        raise Disagreement("a defect")

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    with pytest.raises(Disagreement, match="a defect"), meanwhile.improving_meanwhile(_search(Limits(60.0, workers=2))):
        assert begun.wait(30)


def test_a_short_phase_begins_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any) -> None:
        raise AssertionError("begun")

    monkeypatch.setattr(meanwhile, "_SOON", 30.0)
    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    with meanwhile.improving_meanwhile(_search(Limits(seconds=60.0, workers=2))):
        pass


@pytest.mark.parametrize("late", [False, True])
def test_a_bound_whose_check_does_not_end_in_time_is_not_claimed(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = replace(ENGINE, bounds=AnalyticBounds(load_only=True))
    search = Search(problem(3, 6, memory={"capacity": 2}), Limits(seconds=60.0), lambda _: None, Event(), engine)
    before = search.incumbent.lower_bound
    found = [one for one in certificates(search.problem, search.problem.objective) if one.value > before][:1]
    assert found

    def check(*given: Any) -> Any:
        while late:
            sleep(0.01)
        return check_bound(*given)

    monkeypatch.setattr(meanwhile, "check_bound", check)
    monkeypatch.setattr(meanwhile, "_LATE", -59.0)
    started = monotonic()
    meanwhile.argue_meanwhile(search, found, 10.0)
    assert monotonic() - started < 30
    assert (search.incumbent.lower_bound > before) == (not late)
    assert not search.incumbent.state.notes


def _bounds_of(*values: int, seconds: float = 0.0) -> Iterator[Certificate]:
    """Made up: claims of these values, the last of which takes so long to find."""
    for number, value in enumerate(values):
        if number == len(values) - 1:
            sleep(seconds)
        yield Certificate(f"bound {value}", value, "made up")


def _claimed(search: Search, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    claimed: list[int] = []
    monkeypatch.setattr(meanwhile, "_claim", lambda _, found: claimed.extend(one.value for one in found))
    return claimed


@pytest.mark.parametrize(("allowed", "looked_for"), [(0.0, [1, 2, 3]), (0.99, [1])])
def test_no_bound_is_looked_for_within_the_gap_asked_for(
    allowed: float, looked_for: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    search = _search(Limits(seconds=20, workers=1, gap=allowed))
    claimed = _claimed(search, monkeypatch)
    meanwhile.argue_meanwhile(search, _bounds_of(1, 2, 3), 10.0)
    assert claimed == looked_for


def test_a_bound_whose_check_would_take_too_long_leaves_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    search = _search(Limits(seconds=2, workers=1))
    claimed = _claimed(search, monkeypatch)
    meanwhile.argue_meanwhile(search, _bounds_of(1, 2, 3, seconds=0.8), 1.8)
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
        claimed.append([one.value for one in found])
        now[0] += check_takes

    monkeypatch.setattr(meanwhile, "_claim", claim)
    monkeypatch.setattr(meanwhile, "time", SimpleNamespace(monotonic=lambda: now[0]))
    meanwhile.argue_meanwhile(search, bounds(), 10.0)
    assert claimed == in_turn


@pytest.mark.parametrize("wanted", [True, False])
def test_it_can_be_left_out_and_its_seconds_are_counted(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    def run(orders: Any, _seconds: float, _offer: Any) -> None:
        begun.set()
        while not orders.done():
            sleep(0.01)

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    search = _search(Limits(seconds=20, workers=2), replace(ENGINE, meanwhile=wanted))
    with meanwhile.improving_meanwhile(search):
        assert begun.wait(10 if wanted else 0.2) == wanted
    assert (meanwhile.MEANWHILE in dict(search.parts.taken())) == wanted
