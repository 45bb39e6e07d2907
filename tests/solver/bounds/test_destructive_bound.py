"""Refuted values: none above the true optimum, more than one device proves, and a schedule where there is one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from threading import Event

import pytest

from formulations.jobs.jobs_of_problem import jobs_of
from pipesched.problem.attainable_spans import Value
from pipesched.problem.placement import linear
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.bounds.analytic.catalogue import certificates
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.limits import Limits
from solver.solve import solve
from solver.tasks.dispatch import expanded
from tests.support.columns import Costs, Memory, build
from tests.support.counted import counted
from tests.support.daily import daily
from tests.support.exhaustive.optimum import optimum
from tests.support.in_turn import in_turn
from tests.support.makers import gpt_1_5b, problem
from tests.support.task_brute_force import SHAPES, tiny_tasks
from tests.support.task_brute_force import optimum as optimum_of_tasks
from tests.support.tiny_problem import tiny_problem

SURE = counted(5.0)


def assert_closed_in_on(best: Value, one: Problem, known: list[Value]) -> set[tuple[int, int]]:
    """Bound and value end at the optimum, each step between; the numbers of devices that proved some, and of all."""
    groups = set[tuple[int, int]]()
    for found in destructive_bounds(one, SURE, 60, lambda: (known[0], known[1]), Event()):
        if isinstance(found, RefutedValue):
            assert known[0] < found.value <= best
            known[0] = found.value
            groups.add((len(found.devices), one.devices))
        else:
            timeline = best_times(one, found)
            assert not validate(timeline)
            assert value_of(one, timeline) < known[1]
            known[1] = value_of(one, timeline)
    assert known == [best, best]
    return groups


@in_turn("seed", daily(range(20), 2))
@in_turn("objective", (Objective.MAKESPAN, Objective.SPAN))
def test_nothing_above_the_optimum_is_refuted_and_the_optimum_is_reached(seed: int, objective: Objective) -> None:
    """From a bound of 0 and the worst schedule."""
    one = replace(tiny_problem(Random(seed)), objective=objective)
    best = optimum(one, objective)
    if best is not None:
        assert_closed_in_on(best.value, one, [0, measure(best_times(one, sequential(one))).value_ticks(objective)])


@pytest.mark.parametrize("seed", range(6))
def test_some_devices_refute_nothing_wrong_where_blocks_are_longer_than_their_passes(seed: int) -> None:
    random = Random(seed)
    f, whole = random.randint(1, 5), random.randint(1, 5)
    block = (random.randint(max(f, whole), f + whole),) * 3
    costs = Costs((f,) * 3, (whole,) * 3, None, (whole,) * 3, (random.randint(0, 2),) * 3, overlapped=block)
    memory = Memory((1,) * 3, (0,) * 3, (random.randint(1, 3),) * 3)
    one = build(linear(3), 3, costs, memory, random.choice((Objective.MAKESPAN, Objective.SPAN)))
    best = optimum(one, one.objective)
    assert best is not None
    assert_closed_in_on(best.value, one, [0, best.value])


def test_of_passes_of_several_tasks_nothing_above_the_optimum_is_refuted_and_it_is_reached() -> None:
    """On some devices and on all, of which three may be."""
    shapes, groups = (*SHAPES, (linear(3), 1, 2)), set[tuple[int, int]]()
    for seed in range(20):
        one = tiny_tasks(Random(seed), shapes)
        try:
            best = None if one.network.one_task_each else optimum_of_tasks(one, one.objective)
        except ValueError:
            continue
        if best is not None:
            first = next(iter(expanded(jobs_of(one), sequential(one))))
            groups |= assert_closed_in_on(best, one, [0, value_of(one, best_times(one, first))])
    assert groups >= {(1, 2), (2, 2), (2, 3)}, groups


def test_two_devices_prove_more_than_one_and_all_of_them_the_optimum() -> None:
    """The 1.5B profile on 4 devices with memory for two micro-batches, half an activation a stage."""
    one = gpt_1_5b(4, 12, 2)
    value = solve(one, counted(20)).value_ticks
    assert value is not None
    alone = certificates(one, one.objective)[0]
    proved = [(1, alone.value_ticks)]
    for found in destructive_bounds(one, SURE, 60, lambda: (proved[-1][1], value), Event()):
        assert isinstance(found, RefutedValue)
        proved.append((len(found.devices), found.value))
    assert [devices for devices, _ in proved][:2] == [1, 2]
    assert proved[-1] == (4, value)


def test_nothing_is_searched_after_a_stop_or_where_bound_and_value_meet() -> None:
    stop = Event()
    stop.set()
    assert list(destructive_bounds(problem(2, 4), Limits(), 60, lambda: (0, 100), stop)) == []
    assert list(destructive_bounds(problem(2, 4), Limits(), 60, lambda: (14, 14), Event())) == []
