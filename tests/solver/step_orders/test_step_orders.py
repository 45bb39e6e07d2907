"""Schedules read off orders of steps: valid, the optimum of small problems, nothing where memory does not hold."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from threading import Event
from typing import Any

import numpy as np
import pytest

from pipesched.problem.passes import BW
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.diagram.moves import may_wait
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.engine.subsolvers.step_orders import StepOrders
from solver.limits import Limits
from solver.step_orders.schedules import schedule_with
from solver.step_orders.search import Diagram, Taken, diagram_of, order_count, step_order
from solver.step_orders.weights import advance_whole, settle
from tests.support.counted import counted
from tests.support.makers import problem
from tests.support.slices import run_slice

EVEN = {"forward": 10, "backward": 10, "weight": 10}


def _v(devices: int, microbatches: int, capacity: float, **more: Any) -> Problem:
    keys = {"placement": "v-shape", "times": EVEN, "memory": {"capacity": capacity}, "objective": "span"} | more
    return problem(devices, microbatches, **keys)


def _cheaper_fused(devices: int, microbatches: int, capacity: float, fused: int) -> Problem:
    keys = {"times": EVEN | {"fused": fused, "transfer": 1}, "memory": {"capacity": capacity}, "objective": "span"}
    return problem(devices, microbatches, **keys)


def _best(of: Problem, width: int) -> Fraction | int:
    """The value of the schedule with the best order, which is valid."""
    schedule = schedule_with(of, _diagram(of), _order(of, width))
    assert schedule is not None
    timeline = best_times(of, schedule)
    assert not validate(timeline)
    return value_of(of, timeline)


def _order(of: Problem, width: int) -> list[Taken]:
    order = step_order(_diagram(of), width, Event())
    assert order is not None
    return order


def _diagram(of: Problem) -> Diagram:
    diagram = diagram_of(of, Event())
    assert diagram is not None
    return diagram


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


# Proved by CP-SAT, in ticks.
@pytest.mark.parametrize(("devices", "fused", "least"), [(2, 16, 230), (4, 16, 264)])
def test_a_choice_at_each_backward(devices: int, fused: int, least: int) -> None:
    """Some are full and others split, which the schedule keeps to."""
    of = _cheaper_fused(devices, 8, devices, fused)
    diagram, order = _diagram(of), _order(of, 64)
    schedule = schedule_with(of, diagram, order)
    assert schedule is not None
    assert _best(of, 64) == least
    full = sum(slot[0].kind is BW for slots in schedule.orders for slot in slots)
    assert 0 < full == sum(taken.full for taken in order) < devices * 8


def test_a_full_backward_that_takes_no_longer_than_a_gradient() -> None:
    """Splitting such a backward is of no use."""
    of = _cheaper_fused(2, 4, 2, 10)
    assert not _diagram(of).weights.ticks.any()
    assert _best(of, 8) == 104


def test_only_orders_that_end_below_a_value() -> None:
    diagram = _diagram(_cheaper_fused(2, 8, 2, 16))
    assert step_order(diagram, 64, Event(), 231) is not None
    assert step_order(diagram, 64, Event(), 230) is None
    assert step_order(diagram._replace(completions=None), 64, Event(), 231) is not None


def test_full_backwards() -> None:
    of = problem(2, 4, times={"forward": 10, "backward": 20}, memory={"capacity": 2}, objective="makespan")
    assert _best(of, 8) == 15


def test_weights_without_length_run_at_once() -> None:
    of = _v(2, 4, 3, times={"forward": 10, "backward": 10, "weight": [10, 0, 10, 0]})
    assert _best(of, 8) <= value_of(of, best_times(of, sequential(of)))


def test_the_schedule_takes_no_longer_than_its_order() -> None:
    """The label at the end has the times of the schedule: simulated, it takes no longer."""
    random = Random(3)
    for _ in range(6):
        times = {kind: [random.randint(7, 13) for _ in range(4)] for kind in ("forward", "backward", "weight")}
        of = _v(2, 6, 3, times=times | {"transfer": 1})
        assert _best(of, 2) <= _end(_diagram(of), _order(of, 2))


def _end(diagram: Diagram, order: list[Taken]) -> int:
    """When device 0 has run all its work, step by step."""
    _, steps, weights, _ = diagram
    ran = np.zeros(len(steps.ticks), np.int64)
    label = np.zeros(steps.slots + 3 * len(steps.room) + len(weights.ticks), np.int64)
    for step, delay, full in order:
        assert advance_whole(label, ran, step, may_wait(steps, ran.tolist(), step), delay, full, steps, weights)
        ran[step] += 1
        settle(label, ran, steps)
    return int(label[steps.slots + len(steps.room)])


def test_nothing_where_memory_does_not_hold() -> None:
    wide, narrow = _v(2, 4, 4), _v(2, 4, 1.5)
    assert schedule_with(narrow, _diagram(wide), _order(wide, 4)) is None


class _StopsAfter(Event):
    """Set when it has been asked so many times: once a layer."""

    def __init__(self, asked: int) -> None:
        super().__init__()
        self.left = asked

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_over_in_the_middle() -> None:
    diagram, early, late = _diagram(_v(2, 4, 2)), _StopsAfter(20), _StopsAfter(1000)
    assert step_order(diagram, 1, early) is None and early.left == -1
    assert step_order(diagram, 1, late) is not None and late.left == 1000 - len(diagram.steps.ticks) * 4


def test_nothing_of_two_chains_and_of_blocks() -> None:
    assert order_count(problem(2, 4, placement="bidirectional")) is None
    assert order_count(problem(2, 4, times={"forward": 10, "backward": 20, "overlapped": 25})) is None
    assert order_count(problem(2, 4, memory={"capacity": 2})) is not None


@pytest.mark.parametrize("limits", [Limits(seconds=60.0, workers=1), counted(10.0)])
def test_a_slice_of_it_improves_the_incumbent(limits: Limits) -> None:
    of = _v(2, 6, 3)
    search = Search(of, limits, lambda _: None, Event(), ENGINE)
    search.offer_order(sequential(of))
    assert StepOrders().serves(search)
    run_slice(StepOrders(), search)
    assert search.incumbent.value is not None
    assert search.incumbent.value < value_of(of, best_times(of, sequential(of)))


@pytest.mark.parametrize("limits", [Limits(seconds=60.0, workers=1), counted(10.0)])
def test_with_modes_it_improves_the_incumbent_too(limits: Limits) -> None:
    of = _cheaper_fused(2, 8, 2, 16)
    search = Search(of, limits, lambda _: None, Event(), ENGINE)
    search.offer_order(sequential(of))
    assert StepOrders().serves(search)
    run_slice(StepOrders(), search)
    assert search.incumbent.value == 230


def test_it_serves_problems_with_few_states() -> None:
    for of, serves in ((_v(2, 6, 3), True), (_cheaper_fused(8, 24, 12, 16), False), (_v(8, 24, 12), False)):
        search = Search(of, Limits(seconds=10.0, workers=1), lambda _: None, Event(), ENGINE)
        assert StepOrders().serves(search) is serves
