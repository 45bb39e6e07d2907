"""The exact model over orders, modes and overlapped blocks: its optimum is that of trying everything, in both forms."""

from __future__ import annotations

from math import ceil
from random import Random
from threading import Event

import pytest

from formulations.exact.exact_model import ExactModel, improving
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables import model_variables
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.rescale import value_of
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.backends.cp_sat import Parameters, solve_model
from solver.backends.exact_search import improve
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from tests.support.counted import counted
from tests.support.exhaustive.optimum import least_value
from tests.support.makers import problem
from tests.support.task_brute_force import TooManyOrdersError

SURE = counted(20)
# Placements and micro-batches of which every order can be tried: with a split backward, and with full ones only.
SHAPES = (
    ({"placement": "linear"}, 1, 3, 4),
    ({"placement": "linear"}, 2, 2, 4),
    ({"placement": "linear"}, 3, 2, 3),
    ({"placement": "v-shape"}, 2, 1, 2),
    ({"placement": "bidirectional"}, 2, 2, 3),
    ({"placement": [0, 1, 0]}, 2, 1, 2),
    ({"placement": [1, 0]}, 2, 2, 3),
)


def open_modes(random: Random) -> Problem:
    """Fused backwards a little cheaper or dearer, blocks of .6 to 1.1 of their passes, negative `freed`, tight memory."""
    where, devices, split, full = random.choice(SHAPES)
    splits = random.random() < 0.5
    stages = problem(devices, 1, **where).placement.stages

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(stages)]

    f, b, w = some(random.random() > 0.1, 9), some(random.random() > 0.1, 9), some(0, 6)
    fused = [max(0, x + y + z) for x, y, z in zip(b, w, some(-3, 1), strict=True)]
    times: dict[str, object] = {"forward": f, "backward": b if splits else fused, "transfer": some(0, 2)}
    if splits:
        times |= {"weight": w, "fused": fused}
    if random.random() < 0.85:
        times["overlapped"] = [round((x + y) * random.uniform(0.6, 1.1)) for x, y in zip(f, fused, strict=True)]
    memory: dict[str, object] = {"activation": 2, "freed_by_backward": random.choice((-1, 0, 1, 2)) if splits else 0}
    memory["capacity"] = random.randint(4, 9)
    objective = random.choice(("makespan", "span"))
    return problem(devices, split if splits else full, **where, times=times, memory=memory, objective=objective)


def test_the_optimum_is_that_of_trying_everything_and_relaxations_are_below_it() -> None:
    blocks = fused = 0
    for seed in range(24):
        one = open_modes(Random(seed))
        start = best_times(one, sequential(one))
        value = value_of(one, start)
        try:
            least = least_value(one, one.objective, ceil(value))
        except TooManyOrdersError:
            continue
        assert least is not None
        for literals in (60_000, -1):
            found = improve(improving(one, start, value, 0, literals), SURE, 60, Event(), lambda *_: None)
            timeline = found.timeline or start
            assert validate(timeline) == []
            reached = value_of(one, timeline)
            assert found.bound <= least <= reached, (seed, literals)
            assert reached - found.bound < 1, (seed, literals)
            assert one.objective == Objective.SPAN or reached == least
        blocks += any(len(slot) == 2 for order in timeline.schedule.orders for slot in order)
        fused += one.splittable and len(timeline.schedule.fused) > 0
        for devices in ([0], [one.devices - 1]):
            relaxed = ExactModel(jobs_of(one), ceil(least), 0, devices=devices)
            answer = solve_model(relaxed.cp, Parameters(60, 20, 0, first_solution=True, clauses_only=True), Event())
            assert not answer.infeasible, seed
    assert (blocks > 2, fused > 4) == (True, True), (blocks, fused)


@pytest.mark.parametrize("most", (0, 40_000))
def test_blocks_that_are_too_many_are_left_out_and_bound_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known schedule with blocks, better than any without: the model without them says nothing, and is no defect."""
    monkeypatch.setattr(model_variables, "MOST_BLOCKS", most)
    times = {"forward": 10, "backward": 20, "overlapped": 20}
    one = problem(1, 3, times=times)
    known = simulate(one, by_pairs(one))
    model = improving(one, known, measure(known).makespan_ticks, 0, -1)
    assert model.bounds_everything == (most > 0)
    found = improve(model, SURE, 60, Event(), lambda *_: None)
    assert found.bound == (measure(known).makespan_ticks if most else 0)
    assert found.timeline is None or validate(found.timeline) == []


def by_pairs(one: Problem) -> Schedule:
    """One device: each backward with the next forward."""
    middle = [(Pass(F, 0, j + 1), Pass(BW, 0, j)) for j in range(one.microbatches - 1)]
    return Schedule((((Pass(F, 0, 0),), *middle, (Pass(BW, 0, one.microbatches - 1),)),))


def test_what_a_block_gives_back_is_there_when_it_ends() -> None:
    """Blocks of 6 with backwards of 15, room for two: each forward starts as the block before ends."""
    times = {"forward": 10, "backward": 15, "overlapped": 6}
    one = problem(1, 4, times=times, memory={"activation": 3, "capacity": 8})
    start = best_times(one, sequential(one))
    found = improve(improving(one, start, value_of(one, start), 0), SURE, 60, Event(), lambda *_: None)
    assert found.timeline is not None
    assert validate(found.timeline) == []
    assert found.bound == measure(found.timeline).makespan_ticks == 10 + 3 * 6 + 15
