"""A part on a core of its own: when it begins and ends, what the others have meanwhile, and whose gains are whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from threading import Event
from time import sleep

import pytest

from formulations.exact.exact_model import ExactModel
from pipesched.errors import Disagreement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from solver.backends.exact_search import Callback, CpSatResult
from solver.construction.list_scheduling import sequential
from solver.engine import allocation
from solver.engine.allocation import Allocation
from solver.engine.clock import Clock
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.engine.run import run
from solver.engine.search import Engine, Search
from solver.engine.slices import Work
from solver.engine.subsolvers import core_guided
from solver.engine.subsolvers.core_guided import CoreGuided
from solver.limits import Limits
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import problem
from tests.support.subsolvers import MadeSubsolver, open_search
from tests.support.tiny_problem import tiny_problem

TWO = Limits(seconds=60.0, workers=2)


@dataclass(frozen=True)
class Made(MadeSubsolver):
    """It does the same in each of its slices, and something else on a core of its own."""

    each: Callable[[Search], object] = lambda _: None
    own: Callable[[Search], object] = lambda _: None
    slices: int = 3

    def work(self, search: Search) -> Work:
        for _ in range(self.slices):
            yield
            self.each(search)

    def alone(self, search: Search) -> None:
        self.own(search)


def opened(limits: Limits, own: Made) -> Search:
    return open_search(limits, replace(ENGINE, dedicated_subsolver=own, background=False))


class SteppedClock(Clock):
    """Clock that shows `now`, in seconds: a machine that stands still takes none of the time limit."""

    now = 0.0

    @property
    def seconds(self) -> float:
        return self.now


def raised(search: Search, by: str | None = None) -> None:
    """A bound that is a tick better."""
    search.incumbent.claim(search.incumbent.lower_bound + 1, by=by)


def test_it_begins_at_its_turn_and_the_others_have_a_core_less_until_it_ends() -> None:
    begun, end, workers = Event(), Event(), dict[str, list[int]]()

    def note(name: str, search: Search) -> None:
        assert search.limits.workers in (0, search.workers)
        workers.setdefault(name, []).append(search.workers)
        if name == "after" and len(workers[name]) == 2:
            end.set()
            while search.workers < 3:
                sleep(0.01)

    def alone(_: Search) -> None:
        begun.set()
        assert end.wait(30)

    own = Made("own", each=lambda _: pytest.fail("it has no slices"), own=alone)
    before, after = (Made(name, each=partial(note, name)) for name in ("before", "after"))
    search = opened(Limits(seconds=60.0, workers=3), own)
    Allocation(search, (before, own, after)).run()
    assert begun.is_set()
    assert workers["before"][0] == 3
    assert workers["after"][:2] == [2, 2]
    assert workers["after"][2] == search.workers == 3
    assert {"before", "own", "after"} <= set(dict(search.times.taken()))


def test_a_search_within_another_has_a_core_less_too() -> None:
    """That of a problem's relaxation took all workers, in addition to the one with a core of its own."""
    whole = opened(Limits(seconds=60.0, workers=3), Made("own"))
    inner = Search(whole.problem, whole.limits, lambda _: None, Event(), ENGINE, within=whole)
    assert (inner.workers, inner.limits.workers) == (3, 3) and inner.clock is whole.clock
    whole.cores_taken += 1
    assert (inner.workers, inner.limits.workers) == (2, 2) == (whole.workers, whole.limits.workers)
    assert inner.limits.seconds == whole.limits.seconds


def test_it_takes_no_core_from_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    order, looks = list[str](), list[None]()

    def compiling() -> str:
        looks.append(None)
        return "search, 3 s" if len(looks) < 4 else ""

    monkeypatch.setattr(allocation, "compiling", compiling)
    own = Made("own", own=lambda _: order.append("own"))
    other = Made("other", each=lambda _: order.append("other"), slices=1)
    Allocation(opened(TWO, own), (own, other)).run()
    assert order == ["other", "own"]


@pytest.mark.parametrize("limits", [replace(TWO, workers=1), Limits(workers=2, deterministic=1.0)])
def test_of_one_core_or_where_work_is_counted_it_has_slices_as_others(limits: Limits) -> None:
    slices = list[Search]()
    own = Made("own", each=slices.append, own=lambda _: pytest.fail("it has no core"))
    Allocation(opened(limits, own), (own,)).run()
    assert slices


def test_what_it_closes_is_not_what_the_part_under_way_closed() -> None:
    under_way, proved = Event(), Event()

    def alone(search: Search) -> None:
        assert under_way.wait(30)
        for _ in range(5):
            raised(search, "own")
        proved.set()

    def wait(_: Search) -> None:
        under_way.set()
        assert proved.wait(30)

    own, idle, little = Made("own", own=alone), Made("idle", each=wait), Made("little", each=raised)
    search = opened(TWO, own)
    shared = Allocation(search, (own, idle, little))
    first, second = (arm for arm in shared.arms if arm.runs[0].subsolver != own)
    shared.run()
    assert first.closed == 0 < second.closed
    assert [moment.phase for moment in search.incumbent.state.history].count("own") == 5


def test_others_stop_once_it_has_closed_the_gap_and_it_stops_once_they_have() -> None:
    def close(search: Search) -> None:
        value = search.incumbent.value
        assert value is not None
        search.incumbent.claim(value)

    def wait(search: Search) -> None:
        while not search.stop.is_set():
            sleep(0.01)

    for each, alone in ((wait, close), (close, wait)):
        own, other = Made("own", own=alone), Made("other", each=each)
        search = opened(TWO, own)
        search.engine = replace(search.engine, subsolvers=(own, other), construction=())
        run(search)
        assert search.done() and search.clock.seconds < 30
        assert not search.stop.is_set()  # nobody has asked for that


@pytest.mark.meets_defects
def test_a_defect_or_an_error_that_it_meets_is_noted() -> None:
    def fail(error: Exception) -> Callable[[Search], object]:
        def alone(_: Search) -> None:
            raise error

        return alone

    for error, text in ((Disagreement("a defect alone"), "a defect alone"), (ZeroDivisionError(), "ZeroDivisionError")):
        own, other = Made("own", own=fail(error)), Made("other")
        search = opened(TWO, own)
        Allocation(search, (own, other)).run()
        assert any(text in note for note in search.incumbent.state.notes)


def test_it_ends_where_others_fail() -> None:
    ended = Event()

    def alone(search: Search) -> None:
        while not search.over():
            sleep(0.01)
        ended.set()

    def interrupt(_: Search) -> None:
        raise KeyboardInterrupt

    own = Made("own", own=alone)
    search = opened(TWO, own)
    with pytest.raises(KeyboardInterrupt):
        Allocation(search, (own, Made("other", each=interrupt))).run()
    assert ended.is_set()
    assert search.clock.seconds < 30


# Its analytic lower bound is 81, and one micro-batch after the other takes 147.
OPEN = problem(
    3, 7, times={"forward": 2, "backward": 3, "weight": 2}, memory={"activation": 1, "capacity": 2}, objective="span"
)


def raised_beside(monkeypatch: pytest.MonkeyPatch, caught_up: bool) -> tuple[list[Event], list[float]]:
    """CP-SAT from the bound up where others prove more meanwhile, the first time: its stops, and when they did."""
    search, stops, known = Search(OPEN, TWO, lambda _: None, Event(), ENGINE), list[Event](), list[float]()
    search.offer_order(sequential(OPEN))

    def improve(_model: ExactModel, limits: Limits, _: float, stop: Event, callback: Callback, **__: bool) -> object:
        assert limits.workers == 1
        stops.append(stop)
        if len(stops) == 1:
            sleep(0.2)
            known.append(search.clock.seconds)
            raised(search)
            assert not stop.is_set()
            if caught_up:
                callback(None, search.incumbent.lower_bound + 1)
            while not stop.is_set() and not (caught_up and search.clock.seconds >= 4 * known[0]):
                sleep(0.01)
            known.append(search.clock.seconds)
        return CpSatResult(None, 0, complete=not stop.is_set())

    monkeypatch.setattr(core_guided, "improve", improve)
    CoreGuided().alone(search)
    assert not search.over()
    return stops, known


def test_it_begins_anew_where_others_have_proved_more_for_as_long_as_it_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    stops, (known, stopped) = raised_beside(monkeypatch, caught_up=False)
    assert len(stops) == 2
    assert stopped - known >= 0.2


def test_it_does_not_begin_anew_where_it_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stops, (known, stopped) = raised_beside(monkeypatch, caught_up=True)
    assert len(stops) == 1
    assert stopped >= 4 * known


def test_it_ends_where_it_has_brought_nothing_for_as_long_as_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    search = Search(OPEN, TWO, lambda _: None, Event(), ENGINE)
    search.clock = clock = SteppedClock(TWO)
    search.offer_order(sequential(OPEN))

    def silent(_model: ExactModel, _limits: Limits, _: float, stop: Event, callback: Callback, **__: bool) -> object:
        callback(None, search.incumbent.lower_bound)
        while not stop.is_set():
            clock.now += 1
        return CpSatResult(None, 0)

    monkeypatch.setattr(core_guided, "improve", silent)
    CoreGuided().alone(search)
    assert clock.seconds >= clock.left() > 0


def alone(one: Problem, limits: Limits = TWO) -> Search:
    """From one micro-batch after the other, with nothing but CP-SAT from the bound up on a core of its own."""
    engine = Engine(ENGINE.bounds, (Sequential(),), (CoreGuided(),), Search.solution, dedicated_subsolver=CoreGuided())
    search = Search(one, limits, lambda _: None, Event(), engine)
    run(search)
    return search


@pytest.mark.parametrize("seed", range(12))
def test_from_the_bound_up_it_proves_the_optimum_also_a_fraction(seed: int) -> None:
    one = replace(tiny_problem(Random(seed)), objective=Objective.SPAN)
    best = optimum(one, one.objective)
    if best is not None:
        state = alone(one).incumbent.state
        assert state.lower_bound == state.value == best.value


def test_a_fraction_of_a_tick_is_refuted_in_finer_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    search = alone(OPEN)
    found = search.solution()
    assert found.status is Status.OPTIMAL
    proved = search.incumbent.lower_bound
    monkeypatch.setattr("solver.engine.subsolvers.core_guided.refute", lambda *_: False)
    less = alone(OPEN).incumbent.lower_bound
    assert proved - 1 < less < proved
