"""Beam search: valid orders, the same every time, and the optimum of a small problem where the beam is wide."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from pipesched.problem.passes import B
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.validation.validator import validate
from solver.construction.beam_kernel import Preference
from solver.construction.beam_search import BeamSearch
from solver.construction.beam_tables import beam_run, ceilings, covers, line_of, schedule_of_run
from solver.construction.timing import best_times
from solver.engine.engine import ENGINE
from solver.engine.opening.sequential import Sequential
from solver.engine.parts.beam_schedules import BeamSchedules
from solver.engine.search import Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem

PREFERS, GOING = Preference(10.0, 3.0, 2, 50), np.zeros(1, np.int64)


def drawn(seed: int) -> Problem:
    """Uneven stages, times of zero, B that gives back, little memory or much, full backwards that gain or not."""
    random = Random(seed)
    devices = random.randint(1, 4)

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(devices)]

    times: dict[str, object] = {"forward": some(0, 9), "backward": some(1, 9), "transfer": random.randint(0, 2)}
    if random.random() < 0.7:
        times["weight"] = some(0, 6)
        if random.random() < 0.5:
            times["fused"] = some(2, 9)
    memory: dict[str, object] = {"activation": 3}
    if random.random() < 0.8:
        memory["capacity"] = [random.randint(3, 14) for _ in range(devices)]
    if "weight" in times:
        memory["freed_by_backward"] = random.randint(0, 3)
    objective = random.choice(("span", "makespan"))
    return problem(devices, random.randint(1, 6), times=times, memory=memory, objective=objective)


def runs(case: Problem) -> list[tuple[int, Schedule]]:
    """What a few runs are said to take at most, and their schedules."""
    found = []
    ways = ((True, False), (False, True), (True, True), (True, True, 2)) if case.splittable else ((False, True),)
    for way in ways:
        line = line_of(case, *way)
        for share in (100, None):
            run = beam_run(line, ceilings(line, share, 1), PREFERS, 20, GOING)
            assert run is not None
            found.append((run.value, schedule_of_run(case, run)))
    return found


@pytest.mark.parametrize("seed", range(25))
def test_orders_are_valid_and_take_no_more_than_the_run_says(seed: int) -> None:
    case = drawn(seed)
    assert covers(case)
    for value, schedule in runs(case):
        timeline = best_times(case, schedule)
        assert validate(timeline) == []
        assert value_of(case, timeline) <= value


def cheaper_fused(devices: int, microbatches: int, capacity: float) -> Problem:
    """Full backwards of 16 instead of 10 and 10, and a round trip that takes the work of all micro-batches in memory."""
    return problem(
        devices,
        microbatches,
        times={"forward": 10, "backward": 10, "weight": 10, "fused": 16, "transfer": 1},
        memory={"activation": 1, "capacity": capacity},
        objective="span",
    )


def test_backwards_are_split_where_they_have_to_be() -> None:
    """Of the n-th stage the first n - 1, and after the first stage the last two."""
    case = cheaper_fused(3, 7, 4)
    line = line_of(case, True, True, 2)
    run = beam_run(line, ceilings(line, 100, 1), PREFERS, 20, GOING)
    assert run is not None
    split = {(p.stage, p.microbatch) for p in schedule_of_run(case, run).passes() if p.kind is B}
    assert split == {(1, 0), (1, 5), (1, 6), (2, 0), (2, 1), (2, 5), (2, 6)}


def test_some_split_backwards_are_better_than_all_none_or_a_free_choice() -> None:
    case = cheaper_fused(6, 18, 6)

    def best(*ways: bool | int) -> int:
        line = line_of(case, *ways)
        found = (beam_run(line, ceilings(line, 100, more), PREFERS, 30, GOING) for more in (1, 2))
        return min(run.value for run in found if run is not None)

    some, rivals = best(True, True, 3), (best(True, False), best(False, True), best(True, True))
    assert some < min(rivals)


def test_the_same_run_gives_the_same_order() -> None:
    assert [schedule for _, schedule in runs(drawn(3))] == [schedule for _, schedule in runs(drawn(3))]


def test_wider_beams_find_what_cp_sat_proves_optimal() -> None:
    """Four devices, full backwards, room for three; one node a layer ends above."""
    case = problem(
        4,
        8,
        times={"forward": [10, 11, 9, 13], "backward": [20, 21, 18, 27], "transfer": 1},
        memory={"activation": 1, "capacity": 3},
        objective="span",
    )
    line = line_of(case, False, True)
    narrow, wide = (beam_run(line, ceilings(line, None, 0), PREFERS, width, GOING) for width in (1, 300))
    optimum = solve(case, Limits(seconds=60, workers=1, deterministic=5))
    assert optimum.status.value == "optimal"
    assert narrow is not None
    assert wide is not None
    assert wide.value == optimum.value_ticks < narrow.value


@pytest.mark.parametrize(
    "case",
    (
        problem(2, 4, placement="v-shape", objective="span"),
        problem(2, 4, times={"forward": 2, "backward": 4, "overlapped": 5}),
        problem(2, 4, memory={"activation": 2, "capacity": 8, "freed_by_backward": -1}),
    ),
)
def test_other_placements_blocks_and_backwards_that_take_memory_are_left_alone(case: Problem) -> None:
    assert not covers(case)


def test_a_halted_run_gives_nothing() -> None:
    line = line_of(drawn(3), *((True, False) if drawn(3).splittable else (False, True)))
    assert beam_run(line, ceilings(line, None, 0), PREFERS, 20, np.ones(1, np.int64)) is None


def test_a_search_that_is_over_offers_nothing_more() -> None:
    offered = list[Schedule]()
    BeamSearch(drawn(5), 2).run(lambda: bool(offered), offered.append)
    assert offered


def test_a_search_by_it_alone_finds_schedules_far_below_one_micro_batch_after_the_other() -> None:
    times = {"forward": 10, "backward": 10, "weight": 10, "fused": 17}
    case = problem(6, 24, times=times, memory={"activation": 1, "capacity": 4}, objective="span")
    engine = replace(ENGINE, opening=(Sequential(),), parts=(BeamSchedules(),), finish=Search.solution)
    found = solve(case, Limits(seconds=60, workers=1, deterministic=1), engine=engine)
    assert found.gap is not None and found.gap < 0.12
