"""Which part has the next slice, and local search beside parts that use one core."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Event
from time import sleep
from typing import Any

import pytest

from pipesched.errors import Disagreement
from solver.construction.list_scheduling import list_schedules
from solver.engine import allocation as allocation_module
from solver.engine import search as search_module
from solver.engine.allocation import Allocation
from solver.engine.clock import BACKGROUND
from solver.engine.engine import ENGINE
from solver.engine.search import RoundRobin, Search
from solver.engine.slices import Work
from solver.limits import Limits
from tests.support.counted import counted
from tests.support.subsolvers import MadeSubsolver, open_search

Run = Callable[[Any, float, Any], None]


@dataclass(frozen=True)
class Made(MadeSubsolver):
    """It raises the lower bound by so many ticks a slice, and ends after so many slices."""

    raises: float = 0
    slices: int = 1000
    units: list[float] = field(default_factory=list, hash=False, compare=False)

    def work(self, search: Search) -> Work:
        for _ in range(self.slices):
            slice_ = yield
            assert slice_.units is not None
            self.units.append(slice_.units)
            if self.raises:
                search.incumbent.claim(search.incumbent.lower_bound + self.raises)  # type: ignore[operator]


COUNTED = counted(8.0)


def test_each_part_has_a_slice_in_turn_and_then_the_one_that_closes_more() -> None:
    search = open_search(COUNTED, ENGINE)
    idle, little, much = Made("idle"), Made("little", raises=1), Made("much", raises=3)
    Allocation(search, (idle, little, much)).run()
    assert search.incumbent.timeline is not None
    assert idle.units[0] == little.units[0] == much.units[0] == 1.0
    order = [name for name, _ in search.times.taken()][1:]  # after the bounds to begin with
    assert order == ["idle", "little", "much"]
    # All of them end with as much work as the limit counts, since something stays open.
    assert [sum(made.units) for made in (idle, little, much)] == [8.0] * 3
    # A slice is as long as all before of its part.
    assert much.units == [1.0, 1.0, 2.0, 4.0]


def test_a_part_with_nothing_left_to_do_has_no_more_slices() -> None:
    search = open_search(COUNTED, ENGINE)
    soon, other = Made("soon", slices=1), Made("other")
    Allocation(search, (soon, other)).run()
    assert len(soon.units) == 1 and len(other.units) == 4


@pytest.mark.meets_defects
def test_a_part_that_meets_a_defect_is_over_and_others_go_on() -> None:
    @dataclass(frozen=True)
    class Broken(Made):
        def work(self, search: Search) -> Work:
            yield
            raise Disagreement("a defect")

    search, other = open_search(COUNTED, ENGINE), Made("other")
    Allocation(search, (Broken("broken"), other)).run()
    assert len(other.units) == 4
    assert any("a defect" in note for note in search.incumbent.state.notes)


def test_parts_that_cannot_serve_a_problem_have_no_slice() -> None:
    search = open_search(COUNTED, ENGINE)
    served = {run.subsolver.name for arm in Allocation(search, ENGINE.subsolvers).arms for run in arm.runs}
    assert "local search" in served
    assert not served & {"annealing of tasks", "diagrams of held activations"}


def _fake(search_orders: Run) -> type:
    class Orders:
        def __init__(self, best: Any, others: Any, limits: Limits, done: Callable[[], bool], _: Any) -> None:
            self.best, self.limits, self.done = best, limits, done

        def go_on(self, best: Any, limits: Limits, done: Callable[[], bool]) -> None:
            self.best, self.limits, self.done = best, limits, done

        def run(self, seconds: float, offer: Any) -> bool:
            search_orders(self, seconds, offer)
            return True

    return Orders


@dataclass(frozen=True)
class Waiting(MadeSubsolver):
    """It waits, on one core, for an event in its only slice."""

    name: str = "waiting"
    parallel: bool = False
    event: Event = field(default_factory=Event)
    seconds: float = 30.0

    def work(self, _: Search) -> Work:
        yield
        self.event.wait(self.seconds)


def test_what_local_search_finds_beside_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, workers = Event(), []

    def run(orders: Any, _seconds: float, offer: Any) -> None:
        workers.append(orders.limits.workers)
        offer(next(iter(list_schedules(orders.best.problem))))
        begun.set()
        while not orders.done():
            sleep(0.01)

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    search = open_search(Limits(seconds=60.0, workers=3), ENGINE)
    before = search.incumbent.value
    Allocation(search, (Waiting(event=begun),)).run()
    assert before is not None
    assert search.incumbent.value is not None
    assert search.incumbent.value < before
    assert workers == [2]
    assert BACKGROUND in dict(search.times.taken())


@pytest.mark.parametrize(
    ("limits", "beside"),
    [
        (Limits(seconds=60.0, workers=1), True),
        (Limits(workers=2, deterministic=1.0), True),
        (Limits(seconds=60.0, workers=2), False),
    ],
)
def test_not_with_one_worker_or_counted_work_or_where_it_is_left_out(
    limits: Limits, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: Any) -> None:
        raise AssertionError("begun")

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    search = open_search(limits, replace(ENGINE, background=beside))
    Allocation(search, (Waiting(seconds=0.2),)).run()
    assert BACKGROUND not in dict(search.times.taken())


@pytest.mark.meets_defects
def test_a_defect_of_local_search_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = Event()

    def run(*_: Any) -> None:
        begun.set()
        raise Disagreement("a defect beside")

    monkeypatch.setattr(search_module, "OrderSearch", _fake(run))
    search = open_search(Limits(60.0, workers=2), ENGINE)
    Allocation(search, (Waiting(event=begun),)).run()
    assert any("a defect beside" in note for note in search.incumbent.state.notes)


def test_what_had_a_slice_waits_for_some_of_the_time_until_what_had_none_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allocation = Allocation(open_search(Limits(seconds=60.0, workers=1), ENGINE), (Made("first"), Made("second")))
    first, second = allocation.arms
    looks = list[object]()

    def compiled(arm: object) -> bool:
        looks.append(arm)
        return arm is first or looks.count(second) > 2

    monkeypatch.setattr(allocation, "_compiled", compiled)
    assert allocation._next() is first
    first.took(0.1, 0.0)
    assert allocation._next() is second
    looks.clear()
    monkeypatch.setattr(
        allocation_module, "ALLOCATION", replace(allocation_module.ALLOCATION, waits_for_compilation=0.0)
    )
    assert allocation._next() is first


def test_of_several_ways_the_first_that_is_compiled_is_next() -> None:
    ways = RoundRobin("both", (Made("waits"), Made("ready")))
    search = open_search(Limits(seconds=60.0, workers=1), ENGINE)
    allocation = Allocation(search, (ways,))
    (arm,) = allocation.arms
    first, ready = arm.runs
    search.compiled = lambda kernels: next(iter(arm.runs)) is ready  # type: ignore[method-assign]
    assert allocation._compiled(arm) and list(arm.runs) == [ready, first]
    search.compiled = lambda kernels: False  # type: ignore[method-assign]
    assert not allocation._compiled(arm) and list(arm.runs) == [ready, first]
