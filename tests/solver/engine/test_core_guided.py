"""CP-SAT from the bound up: the first pass of a span starts at 0, and what is proved from below is the optimum."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from random import Random
from threading import Event
from time import sleep

import pytest

from formulations.exact.exact_model import ExactModel, improving
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables.operations import Operation
from pipesched.problem.attainable_spans import Value
from pipesched.problem.passes import F
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.backends import exact_search
from solver.backends.cp_sat import Parameters, solve_model
from solver.backends.exact_search import Callback, improve
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.engine.clock import Clock
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.engine.improving_model import improving_model
from solver.engine.run import run
from solver.engine.search import Search
from solver.engine.slices import Slice
from solver.engine.subsolvers import core_guided
from solver.engine.subsolvers.core_guided import CoreGuided
from solver.engine.subsolvers.destructive import DestructiveBounds
from solver.limits import Limits
from tests.support.counted import counted
from tests.support.exhaustive.optimum import optimum
from tests.support.makers import problem
from tests.support.tiny_problem import tiny_problem

SURE = counted(5)
MUCH = 10**6
# Its analytic lower bound is 81, and one micro-batch after the other takes 147.
OPEN = problem(
    3, 7, times={"forward": 2, "backward": 3, "weight": 2}, memory={"activation": 1, "capacity": 2}, objective="span"
)


def used_up(search: Search) -> Slice:
    """A slice that is over; what is silent has five seconds more."""
    return Slice(search.clock, search.clock.seconds - 5, 5.0)


class StartedClock(Clock):
    """Clock that stands at 0 until `start` is called, so that a slow machine ends no slice before its first report."""

    _offset: float | None = None

    def start(self) -> None:
        if self._offset is None:
            self._offset = super().seconds

    @property
    def seconds(self) -> float:
        return 0.0 if self._offset is None else super().seconds - self._offset


def delayed(one: Problem, stages: list[int]) -> bool:
    """Whether a schedule is left where the first forwards of these stages start later than 0."""
    model = ExactModel(jobs_of(one), MUCH, 0)
    for stage in stages:
        model.cp.add(model.model.start[Operation(F, stage, one.microbatches_of[stage][0])] >= 1)
    return not solve_model(model.cp, Parameters(60, 5, 0, first_solution=True), Event()).infeasible


@pytest.mark.parametrize(("placement", "firsts"), [("linear", [0]), ("v-shape", [0]), ("bidirectional", [0, 2])])
def test_the_first_pass_of_a_span_starts_at_0(placement: str, firsts: list[int]) -> None:
    one = problem(2, 2, placement=placement, objective="span")
    assert [chain[0] for chain in one.placement.chains] == firsts
    assert not delayed(one, firsts)
    assert delayed(replace(one, objective=Objective.MAKESPAN), firsts)
    if len(firsts) > 1:
        assert all(delayed(one, [first]) for first in firsts)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_proved_from_below_is_the_optimum(seed: int) -> None:
    one = replace(tiny_problem(Random(seed)), objective=Objective.SPAN)
    best = optimum(one, one.objective)
    if best is None:
        return
    worst = best_times(one, sequential(one))
    model = improving(one, worst, value_of(one, worst), 0)
    found = improve(model, SURE, 60, Event(), lambda *_: None, core_guided=True)
    assert found.bound <= best.value < found.bound + 1
    if found.timeline is not None:
        assert not validate(found.timeline)
        assert value_of(one, found.timeline) < best.value + 1


def test_with_destructive_bounds_it_proves_what_is_left() -> None:
    """From one micro-batch after the other; the fraction of a tick that the model leaves is refuted."""
    engine = replace(ENGINE, construction=(Sequential(),), subsolvers=(CoreGuided(), DestructiveBounds()))
    search = Search(OPEN, SURE, lambda _: None, Event(), engine)
    run(search)
    state = search.incumbent.state
    assert state.lower_bound == state.value
    assert state.lower_bound > max(one.value_ticks for one in certificates(OPEN, OPEN.objective))


def test_it_goes_on_from_slice_to_slice_and_begins_anew_where_others_prove_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search, stated = Search(OPEN, Limits(workers=1, seconds=60), lambda _: None, Event(), ENGINE), list[Value]()
    search.offer_order(sequential(OPEN))

    def recorded(search: Search) -> ExactModel:
        stated.append(search.incumbent.lower_bound)
        return improving_model(search)

    monkeypatch.setattr(core_guided, "improving_model", recorded)
    work = CoreGuided(stating_share=inf).work(search)  # slices of any length
    next(work)
    proved = [search.incumbent.lower_bound]
    for _ in range(2):
        work.send(used_up(search))
        proved.append(search.incumbent.lower_bound)
    assert proved == sorted(proved)
    assert proved[-1] > proved[0]
    assert stated == proved[:1]
    search.incumbent.claim(proved[-1] + 1)  # of a least value of 70
    work.send(used_up(search))
    assert stated == [proved[0], proved[-1] + 1]
    work.close()


def test_one_that_reports_nothing_is_ended_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    limits, asked = Limits(workers=1, seconds=60), list[Event]()
    search = Search(OPEN, limits, lambda _: None, Event(), ENGINE)
    search.clock = clock = StartedClock(limits)
    search.offer_order(sequential(OPEN))

    def silent(model: ExactModel, limits: Limits, seconds: float, stop: Event, callback: Callback, **_: bool) -> object:
        asked.append(stop)
        callback(None, search.incumbent.lower_bound)
        clock.start()
        if len(asked) > 1:
            return exact_search.improve(model, limits, seconds, stop, callback, core_guided=True)
        while not stop.is_set():
            sleep(0.01)
        return exact_search.CpSatResult(None, 0)

    monkeypatch.setattr(core_guided, "improve", silent)
    work = CoreGuided().work(search)
    next(work)
    work.send(Slice(clock, clock.seconds, 0.1))
    assert len(asked) == 1
    assert asked[0].is_set()
    before = search.incumbent.lower_bound
    with pytest.raises(StopIteration):
        work.send(Slice(clock, clock.seconds, 60.0))
    assert len(asked) == 2
    assert search.incumbent.lower_bound > before
