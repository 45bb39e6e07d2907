"""Schedules read off orders of steps: valid, the optimum of small problems, nothing where memory does not hold."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pytest

from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.crossing_steps.steps import steps_of, walked_chains
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.engine import search as engine_search
from solver.engine.engine import ENGINE
from solver.engine.phases.step_orders import StepOrders
from solver.engine.search import Search
from solver.limits import Limits
from solver.step_orders import pace
from solver.step_orders.labels import advance_whole
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import only_chain, order_count, step_order
from tests.support.makers import problem

SHARES = (0.5, 0.8, 1.0)
EVEN = {"forward": 10, "backward": 10, "weight": 10}


def _v(devices: int, microbatches: int, capacity: float, **more: Any) -> Problem:
    keys = {"placement": "v-shape", "times": EVEN, "memory": {"capacity": capacity}, "objective": "span"} | more
    return problem(devices, microbatches, **keys)


def _best(of: Problem, width: int) -> Fraction | int:
    """The least value of the schedules with the best order, each of which is valid."""
    order, chain, values = step_order(of, lambda *_: width), only_chain(of), []
    assert order is not None
    assert chain is not None
    for share in SHARES:
        schedule = schedule_with(of, chain, order, share)
        assert schedule is not None
        timeline = best_times(of, schedule)
        assert not validate(timeline)
        values.append(value_of(of, timeline))
    return min(values)


@pytest.mark.parametrize("objective", ["span", "makespan"])
def test_every_placement_of_one_chain(objective: str) -> None:
    random = Random(5)
    for placement, chunks in (("linear", 1), ("v-shape", 1), ("interleaved", 2), ("wave", 2)):
        stages = {"linear": 2, "v-shape": 4, "interleaved": 4, "wave": 4}[placement]
        times = {kind: [random.randint(7, 13) for _ in range(stages)] for kind in ("forward", "backward", "weight")}
        keys = {"placement": placement, "times": times | {"transfer": 1}, "objective": objective}
        if placement in ("interleaved", "wave"):
            keys["chunks"] = chunks
        of = problem(2, 5, memory={"capacity": 3}, **keys)
        assert _best(of, 4) <= value_of(of, best_times(of, sequential(of)))


# Proved by CP-SAT, in ticks of 10.
@pytest.mark.parametrize(
    ("devices", "microbatches", "capacity", "least"), [(2, 4, 2, 33), (2, 6, 3, 39), (3, 5, 3, 44)]
)
def test_the_optimum_of_small_problems(devices: int, microbatches: int, capacity: int, least: int) -> None:
    assert _best(_v(devices, microbatches, capacity), 64) == least


def test_full_backwards() -> None:
    of = problem(2, 4, times={"forward": 10, "backward": 20}, memory={"capacity": 2}, objective="makespan")
    assert _best(of, 8) == 15


def test_a_weight_pass_is_whole() -> None:
    """On one device: a step comes after a weight pass that is under way, or before all of it."""
    of = problem(2, 3, times=EVEN, memory={"capacity": 3})
    (chain,) = walked_chains(of)
    steps = steps_of(of, Paths(of), chain, (0, 1))
    assert steps is not None
    most = steps.in_flight
    label = np.zeros(most + 6, np.int64)
    label[most + 4] = 14  # of device 0: 10 of a weight pass, begun at 4, of which 4 are over at 8
    label[0] = 8
    found = []
    for delay in (0, 1, 2):
        new = label.copy()
        new[most] = 8
        if advance_whole(new, 0, 3, -1, delay, steps, np.array([10, 10]), True):
            found.append((int(new[most]), int(new[most + 4])))
    assert found == [(9, 29), (15, 25)]  # the step takes one tick


def test_nothing_where_memory_does_not_hold() -> None:
    wide = _v(2, 4, 4)
    order = step_order(wide, lambda *_: 4)
    assert order is not None
    assert schedule_with(_v(2, 4, 1.5), tuple(range(4)), order, 0.5) is None


def test_over_in_the_middle() -> None:
    assert step_order(_v(2, 4, 2), lambda done, _: done < 20) is None


def test_the_pace_keeps_to_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a thousandth of a second for an order of a state: as many of 10 states as 10 seconds allow for 100 steps."""
    now = 0.0
    monkeypatch.setattr(pace.time, "monotonic", lambda: now)
    over = Event()
    width_of, widths = pace.Pace(10.0, 100, 50, over.is_set), []
    for done in range(100):
        widths.append(width_of(done, 10))
        now += 0.001 * 10 * widths[-1]
    assert 8.5 < now < 10
    assert min(widths) == 8
    assert 9 <= widths[50] <= 11
    over.set()
    assert width_of(99, 10) == 0
    over.clear()
    now = 10.5
    assert width_of(99, 10) == 0


def test_nothing_of_two_chains_and_of_blocks() -> None:
    assert order_count(problem(2, 4, placement="bidirectional")) is None
    assert order_count(problem(2, 4, times={"forward": 10, "backward": 20, "overlapped": 25})) is None
    assert order_count(problem(2, 4, memory={"capacity": 2})) is not None


@pytest.mark.parametrize("limits", [Limits(seconds=60.0, workers=1), Limits(workers=1, deterministic=10.0)])
def test_the_phase_improves_the_incumbent(limits: Limits, monkeypatch: pytest.MonkeyPatch) -> None:
    of = _v(2, 6, 3)
    search = Search(of, limits, lambda _: None, Event(), ENGINE)
    search.offer_order(sequential(of))
    phase = replace(StepOrders(), most=8)
    assert not phase.applies(search)  # CP-SAT refutes more of so small a problem
    monkeypatch.setattr(engine_search, "REFUTABLE_LITERALS", 0)
    assert phase.applies(search)
    phase.run(search)
    assert search.incumbent.value is not None
    assert search.incumbent.value < value_of(of, best_times(of, sequential(of)))


def test_the_phase_is_for_few_states_and_fixed_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_search, "REFUTABLE_LITERALS", 0)
    fused = {"forward": 10, "backward": 10, "weight": 10, "fused": 16}
    for of in (_v(2, 6, 3, times=fused), _v(8, 24, 12)):
        search = Search(of, Limits(seconds=10.0, workers=1), lambda _: None, Event(), ENGINE)
        search.offer_order(sequential(of))
        assert not StepOrders().applies(search)
