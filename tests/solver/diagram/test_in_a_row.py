"""Diagrams of all orders on the first devices of a line: proved by the check, never above the optimum, and where they count."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from threading import Event

import pytest

from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.results.diagram_evidence import Diagram
from pipesched.schedule.metrics import measure
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times
from solver.diagram import device_sets
from solver.diagram.all_orders import bounds_in_a_row
from solver.engine.engine import ENGINE
from solver.engine.parts.bounds import all_orders
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.certified import assert_proved_and_no_more
from tests.support.makers import problem

TIMES = {"forward": [9, 11, 10, 12, 9, 10], "backward": [10, 9, 11, 10, 12, 9], "weight": 9}


@pytest.fixture(autouse=True)
def few_states_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_sets, "_MOST_STATES", 0)


def test_they_are_proved_by_the_check_and_a_tick_more_is_not() -> None:
    one = problem(6, 9, times=TIMES, memory={"capacity": 3}, objective="span")
    found = list(bounds_in_a_row(one, Event()))
    assert_proved_and_no_more(one, found)
    kept = [each.evidence.stages for each in found if isinstance(each.evidence, Diagram)]
    assert kept[0] == (0, 1, 2) and len(kept) == len(found)
    assert [each.value_ticks for each in found] == sorted({each.value_ticks for each in found})
    assert found[-1].value_ticks > max(each.value_ticks for each in certificates(one, Objective.SPAN))


def test_nothing_where_all_devices_are_kept_elsewhere_or_a_chain_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    few = problem(6, 9, times=TIMES, memory={"capacity": 3}, objective="span")
    back = problem(6, 9, placement="v-shape", memory={"capacity": 6}, objective="span")
    assert not list(bounds_in_a_row(back, Event()))
    assert not list(bounds_in_a_row(few, Event(), work=10))
    monkeypatch.setattr(device_sets, "_MOST_STATES", 10**6)
    assert not list(bounds_in_a_row(few, Event()))


@pytest.mark.parametrize("seed", range(8))
def test_no_schedule_is_shorter(seed: int) -> None:
    random = Random(seed)

    def each() -> list[int]:
        return [random.randint(1, 4) for _ in range(5)]

    times = {"forward": each(), "backward": each(), "weight": each(), "transfer": random.randint(0, 1)}
    objective = random.choice(["span", "makespan"])
    one = problem(5, 6, times=times, memory={"capacity": random.randint(2, 3)}, objective=objective)
    schedules = (best_times(one, schedule) for schedule in list_schedules(one))
    least = min(measure(timeline).value_ticks(one.objective) for timeline in schedules)
    assert all(found.value_ticks <= least for found in bounds_in_a_row(one, Event()))


def test_a_solve_tries_them(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Problem] = []

    def recorded(one: Problem, *_: object) -> Iterator[Certificate]:
        tried.append(one)
        yield from bounds_in_a_row(one, Event())

    monkeypatch.setattr(all_orders, "bounds_in_a_row", recorded)
    one = problem(6, 9, times=TIMES, memory={"capacity": 3}, objective="span")
    engine = Engine(ENGINE.bounds, ENGINE.opening, (all_orders.AllOrders(),), Search.solution)
    found = solve(one, Limits(seconds=60, workers=1, deterministic=20), engine=engine)
    assert set(tried) == {one}
    assert found.certificate is not None
