"""Prices of a device's time and memory: whatever they are, what they prove is below the true optimum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from threading import Event

import numpy as np
import pytest

from formulations.single_device.visits import Later, OneDevice, Trip, Visit
from pipesched.files.problem_file import problem_from
from pipesched.problem import placement
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from solver.bounds.analytic.catalogue import certificates
from solver.bounds.analytic.critical_paths import Paths, chains_on
from solver.bounds.analytic.heads_and_tails import heads_and_tails
from solver.bounds.lagrangian.bound import lagrangian_bounds, least_total_cost
from solver.bounds.lagrangian.single_device import one_device
from solver.bounds.lagrangian.subproblem import NEVER, Multipliers, solve_subproblem
from solver.engine.engine import ENGINE
from solver.engine.phases.bounds.raise_bounds import RaiseBounds
from solver.engine.phases.local_search import LocalSearch
from solver.engine.phases.sequential import Sequential
from solver.engine.search import Search
from solver.limits import Limits
from solver.local_search.portfolio import OrderSearch
from solver.solve import solve
from tests.support.brute_force import attained, optimum, tiny_problem
from tests.support.columns import Costs, Memory, build
from tests.support.makers import gpt_1_5b
from tests.support.makers import problem as linear
from tests.support.sweeps import hard

objectives = pytest.mark.parametrize("objective", (Objective.MAKESPAN, Objective.SPAN))


def any_multipliers(random: Random, until: int, spread: int) -> Multipliers:
    """Prices at a few instants, many of them nothing."""
    instants = sorted(random.sample(range(until + 1), min(until + 1, random.randint(1, spread))))
    running, holding = ([random.choice((0, random.randint(1, 9))) for _ in instants] for _ in range(2))
    return Multipliers(np.array(instants), np.array(running), np.array(holding))


@objectives
@pytest.mark.parametrize("seed", range(60))
def test_no_prices_refute_the_optimum(seed: int, objective: Objective) -> None:
    random = Random(seed)
    problem = replace(tiny_problem(random), objective=objective)
    best = optimum(problem, objective)
    if best is None or problem.overlaps:
        return
    paths = Paths(problem)
    for device in range(problem.devices):
        if not (chains := chains_on(problem, device)):
            continue
        for ends in heads_and_tails(problem, paths, objective, [chain[0] for chain in chains]):
            visited = one_device(problem, paths, device, ends.owner)
            for spread in (1, 3, 8):
                multipliers = any_multipliers(random, best.value, spread)
                if visited.capacity is None:
                    multipliers = multipliers._replace(holding=np.zeros_like(multipliers.holding))
                assert least_total_cost(visited, multipliers, best.value) <= multipliers.of_all(visited.capacity)


def test_another_device_may_run_weight_passes_after_the_end_of_the_one_they_passed_before() -> None:
    problem = linear(2, 1, times={"forward": 1, "backward": 1, "weight": [1, 30], "transfer": 20}, objective="span")
    best = optimum(problem, Objective.SPAN)
    assert best is not None
    assert best.value == 1 + 20 + 1 + 1 + 20 + 1 + 1
    visited = one_device(problem, Paths(problem), 1, 0)
    for instant in range(best.value):
        multipliers = Multipliers(np.array([instant]), np.array([1]), np.array([0]))
        assert least_total_cost(visited, multipliers, best.value) <= 1


@objectives
def test_no_prices_found_prove_more_than_the_optimum(objective: Objective) -> None:
    # A span may be a fraction of a tick, so a refuted whole number proves only the least fraction above it.
    least = 5 if objective is Objective.SPAN else 10
    assert attained(lambda problem, near: lagrangian_bounds(problem, 0, near, 60, Event()), objective, 60) > least


def tried_out(device: OneDevice, trip: Trip, multipliers: Multipliers, until: int) -> int:
    """The least cost over all times of the visits, one after another."""
    running, holding = (dict(zip(multipliers.instants.tolist(), one.tolist(), strict=True)) for one in multipliers[1:])

    def charge(price: dict[int, int], start: int, end: int) -> int:
        return sum(cost for instant, cost in price.items() if start <= instant < end)

    def put_off(later: Later, ready: int) -> int:
        latest = until - later.ticks if device.all_by_the_end else until + 1
        costs = [
            charge(running, s, s + later.ticks) + later.gives * charge(holding, 0, s + later.ticks)
            for s in range(ready, latest + 1)
        ]
        return min(costs, default=NEVER)

    def rest(number: int, ready: int) -> int:
        if number == len(trip.visits):
            return 0
        visit = trip.visits[number]
        best = NEVER
        for start in range(max(ready, visit.earliest), until - visit.after - visit.ticks + 1):
            end = start + visit.ticks
            cost = charge(running, start, end) - visit.takes * charge(holding, 0, start)
            cost += visit.gives * charge(holding, 0, end) + rest(number + 1, end + visit.away)
            cost += put_off(visit.later, end) if visit.later is not None else 0
            best = min(best, cost)
        return best

    return rest(0, 0)


# The last two notice a cost that is looked up one tick too late.
@pytest.mark.parametrize("seed", (*range(80), 92, 104))
def test_the_cheapest_way_is_that_of_all_times_tried(seed: int) -> None:
    random = Random(seed)
    visits, earliest, held = [], 0, 0
    for number in range(random.randint(1, 3)):
        ticks, away = random.randint(0, 3), random.randint(0, 3)
        takes = random.randint(0, 3) if number == 0 else random.randint(0, 1)
        held += takes
        gives = random.randint(0, held)
        held -= gives
        later = None
        if random.random() < 0.5:
            later, held = Later(random.randint(0, 3), held), 0
        visits.append(Visit(earliest, ticks, away, random.randint(0, 4), takes, gives, later))
        earliest += ticks + away
    until = earliest + random.randint(0, 10)
    trip = Trip(1, tuple(visits))
    device = OneDevice(5, (trip,), random.random() < 0.5)
    multipliers = any_multipliers(random, until, 8)
    found = solve_subproblem(device, trip, multipliers, until)
    assert min(found, NEVER) == min(tried_out(device, trip, multipliers, until), NEVER)


def test_v_at_a_third_of_the_memory() -> None:
    """Rounds through the memory of the device in the middle, which holds two chunks: nearly what round trips in a row
    prove there, by another argument."""
    costs = Costs((14407,) * 32, (14380,) * 32, (9676,) * 32, (24056,) * 32, (1610,) * 32)
    memory = Memory((1,) * 32, (0,) * 32, (12,) * 16)
    problem = build(placement.v_shape(16), 24, costs, memory, Objective.SPAN)
    words = certificates(problem, Objective.SPAN)[0].value
    found = list(lagrangian_bounds(problem, words * 19 // 20, words * 5 // 4, 60, Event()))
    assert [one.value for one in found] == sorted({one.value for one in found})
    assert found[-1].device == 15
    assert found[-1].kind == "Lagrangian"
    assert "device 15" in found[-1].text
    assert found[-1].value > words * 0.98


def test_memory_in_bytes_proves_as_much_as_in_activations() -> None:
    plain = gpt_1_5b(8, 24, 4)
    size = 3 * 2**30 + 1
    bytes_each = plain.with_stages(activation=(size,) * 8, freed=(0,) * 8).with_room((4 * size,) * 8)
    one, other = (
        max(c.value for c in lagrangian_bounds(problem, 0, 1_000_000, 60, Event())) for problem in (plain, bytes_each)
    )
    assert other == pytest.approx(one, rel=0.01)


def test_nothing_of_blocks_that_overlap() -> None:
    problem = gpt_1_5b(8, 24, 4)
    shorter = problem.with_stages(overlapped=[stage.forward + stage.backward for stage in problem.stages])
    assert not list(lagrangian_bounds(shorter, 0, 10**9, 60, Event()))


def begun(problem: Problem, workers: int, seconds: float = 600) -> Search:
    """A search with a schedule, and some time left."""
    search = Search(problem, Limits(seconds=seconds, workers=workers), lambda _: None, Event(), ENGINE)
    Sequential().run(search)
    return search


def test_a_bound_above_a_schedule_is_dropped_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(problem: Problem, proved: int, at_most: int, *_: object) -> Iterator[Certificate]:
        yield Certificate("Lagrangian", at_most + 10**9, "", 0)

    monkeypatch.setattr("solver.engine.bound_search.lagrangian_bounds", too_much)
    alone, background = begun(gpt_1_5b(4, 4, 2), 1), begun(gpt_1_5b(4, 4, 2), 2, seconds=1.5)
    monkeypatch.setattr("solver.engine.bound_search.destructive_bounds", lambda *_: iter(()))
    RaiseBounds().run(alone)
    LocalSearch().with_bounds(background)
    for search in (alone, background):
        assert search.incumbent.state.certificate.kind != "Lagrangian"
        assert "Lagrangian is above a valid schedule" in search.incumbent.state.notes[0]


def test_counted_work_gives_the_same_with_prices() -> None:
    problem = problem_from(hard() | {"microbatches": 6})
    limits = Limits(seconds=600, workers=1, deterministic=0.01)
    steps: set[str] = set()
    one, other = (solve(problem, limits, lambda moment: steps.add(moment.phase)) for _ in range(2))
    assert RaiseBounds().name in steps
    assert [(moment.value, moment.lower_bound) for moment in one.history] == [
        (moment.value, moment.lower_bound) for moment in other.history
    ]
    assert one.certificate == other.certificate


def test_all_workers_anneal_once_no_better_bound_will_come(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[int | None] = []

    def noted(self: OrderSearch, *_: object) -> None:
        began.append(self.limits.workers)

    monkeypatch.setattr("solver.engine.bound_search.lagrangian_bounds", lambda *_: iter(()))
    monkeypatch.setattr("solver.engine.bound_search.destructive_bounds", lambda *_: iter(()))
    monkeypatch.setattr(OrderSearch, "run", noted)
    LocalSearch().with_bounds(begun(gpt_1_5b(4, 4, 2), 3))
    assert began == [2, 3]


def test_it_stops_when_told() -> None:
    stop = Event()
    stop.set()
    assert not list(lagrangian_bounds(gpt_1_5b(8, 24, 4), 0, 10**9, 60, stop))
