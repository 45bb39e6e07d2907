"""Spans to the fraction of a tick: the times of an order, the models and bounds, the solve, and the files."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from threading import Event

import pytest

from formulations.exact.exact_model import improving
from heuristics.catalogue import HEURISTICS
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.problem import placement
from pipesched.problem.attainable_spans import largest_denominator
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.simulation.simulator import simulate_late
from pipesched.validation.validator import validate
from solver.backends.destructive_bound import RefutedValue, destructive_bounds
from solver.backends.exact_search import improve
from solver.construction.timing import best_times, times_within
from solver.solve import solve
from tests.support.counted import counted
from tests.support.exhaustive.optimum import least_value
from tests.support.in_turn import in_turn
from tests.support.makers import problem, random_order
from tests.support.task_brute_force import arcs_of, game_of
from tests.support.tiny_problem import tiny_problem

SURE = counted(20)
HALF = problem(
    2,
    2,
    placement="bidirectional",
    times={"forward": 4, "backward": 1, "weight": [4, 4, 3, 2], "transfer": 1},
    objective="span",
)
QUARTER = problem(
    2,
    3,
    times={"forward": [4, 2], "backward": [0.5, 1], "weight": [4.5, 6.5], "fused": 7, "transfer": [4, 0]},
    memory={"activation": 3, "freed_by_backward": 1},
    objective="span",
)
# Passes of no length: an order of more than 27 ticks takes as many whole steps of the model as one of 27.
NO_LENGTH = problem(
    3,
    2,
    placement="bidirectional",
    times={
        "forward": [3, 3, 0, 4, 1, 4],
        "backward": 4,
        "weight": [6, 1, 2, 6, 1, 2],
        "transfer": [0, 1, 0, 0, 0, 0],
        "overlapped": [8, 1, 0, 8, 1, 0],
    },
    memory={"activation": 2, "capacity": 4},
    objective="span",
)
SHAPES = ((placement.bidirectional(2), 2, 2), (placement.linear(2), 2, 3), (placement.explicit(2, [1, 0]), 2, 3))
# Seeds of problems below whose least span is a fraction of a tick.
FRACTIONS = (2, 14, 53, 147)


def two_ways(seed: int) -> Problem:
    """Two devices, a micro-batch in each direction."""
    random = Random(seed)
    times: dict[str, object] = {
        "forward": random.randint(1, 5),
        "backward": (backward := random.randint(1, 5)),
        "weight": (weight := [random.randint(0, 5) for _ in range(4)]),
        "transfer": random.randint(0, 3),
    }
    if random.random() < 0.3:
        times["fused"] = [max(0, backward + each - 1) for each in weight]
    return problem(2, 2, placement="bidirectional", times=times, objective="span")


@in_turn("seed", range(100))
def test_the_times_of_an_order_have_its_least_span(seed: int) -> None:
    random = Random(seed)
    one = replace(tiny_problem(random, SHAPES), objective=Objective.SPAN)
    if seed % 3 == 0:
        one = HALF if seed % 2 else QUARTER
    order = random_order(one, random)
    game = game_of(one, order)
    least = game.value(arcs_of(game, order), Objective.SPAN)
    assert least is not None
    timeline = best_times(one, order)
    assert value_of(one, timeline) == least <= measure(simulate_late(one, order)).span_ticks
    assert {violation.rule for violation in validate(timeline)} <= {"memory"}
    assert times_within(one, order, least - Fraction(1, 100)) is None
    assert least.denominator <= largest_denominator(one)


@pytest.mark.parametrize(("one", "span"), [(HALF, Fraction(35, 2)), (QUARTER, Fraction(121, 4)), (NO_LENGTH, 27)])
def test_a_span_that_is_a_fraction_of_a_tick_is_found_and_proved(one: Problem, span: Fraction, tmp_path: Path) -> None:
    solution = solve(one, SURE)
    assert solution.status is Status.OPTIMAL
    assert solution.value_ticks is not None
    assert solution.value_ticks * solution.problem.tick == span
    assert solution.notes == ()
    assert solution.timeline is not None
    assert validate(solution.timeline) == []
    path = tmp_path / "schedule.json"
    path.write_text(to_text(ScheduleFile(solution.timeline, solution.lower_bound_ticks, solution.certificate)))
    again = read_schedule(path)
    assert again.timeline.problem == solution.problem
    assert measure(again.timeline).span_ticks * again.timeline.problem.tick == span
    assert again.false_claims() == []


@pytest.mark.parametrize("seed", FRACTIONS)
def test_no_bound_is_above_a_fraction_of_a_tick_and_the_solve_reaches_it(seed: int) -> None:
    one = two_ways(seed)
    least = least_value(one, Objective.SPAN)
    assert least is not None
    assert least.denominator > 1
    start = best_times(one, random_order(one, Random(seed)))
    model = improving(one, start, value_of(one, start), 0)
    assert improve(model, SURE, 60, Event(), lambda *_: None).bound <= least
    solution = solve(one, SURE)
    assert (solution.status, solution.lower_bound_ticks * solution.problem.tick) == (Status.OPTIMAL, least * one.tick)


def test_what_is_refuted_last_is_a_fraction_of_a_tick() -> None:
    found = list(destructive_bounds(HALF, SURE, 60, lambda: (16, 18), Event()))
    assert RefutedValue(Fraction(35, 2), [0, 1]) in found
    assert not isinstance(found[-1], RefutedValue)
    assert value_of(HALF, best_times(HALF, found[-1])) == Fraction(35, 2)


def test_no_fractions_where_one_device_begins_first_and_ends_last() -> None:
    fused = {"forward": 1, "backward": 2}
    assert largest_denominator(problem(4, 8, times=fused, objective="span")) == 1
    assert largest_denominator(problem(4, 8, objective="makespan")) == 1
    assert largest_denominator(problem(4, 8, objective="span")) == 4
    assert largest_denominator(problem(4, 8, times=fused, objective="span", placement="bidirectional")) == 4


@pytest.mark.parametrize("activation", (0, [0, 1, 1, 0]))
def test_zbv_of_stages_that_hold_nothing(activation: object) -> None:
    one = problem(2, 4, placement="v-shape", objective="span", memory={"activation": activation})
    for name in ("zbv", "zbv-cost-aware"):
        assert validate(best_times(one, HEURISTICS[name].order(one))) == []
