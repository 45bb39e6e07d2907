"""The exact model over orders, modes and overlapped blocks: its optimum is that of trying everything, in both forms."""

from __future__ import annotations

from math import ceil
from random import Random
from threading import Event

import pytest

from benchmarks.proofs.exhaustive.optimum import NotTiny, least_value
from formulations.exact import exact_model
from formulations.exact.exact_model import ExactModel, improving
from formulations.exact.work_by_mode import post_work
from formulations.jobs.jobs_of_problem import jobs_of
from formulations.variables import model_variables
from formulations.variables.operations import Operation
from pipesched.problem.passes import BW, B, F, Pass
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
from solver.limits import Limits
from tests.support.makers import problem

SURE = Limits(seconds=600, workers=1, deterministic=20)
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
    for seed in range(40):
        one = open_modes(Random(seed))
        start = best_times(one, sequential(one))
        value = value_of(one, start)
        try:
            least = least_value(one, one.objective, ceil(value))
        except NotTiny:
            continue
        assert least is not None
        for literals in (60_000, -1):
            found = improve(improving(one, start, value, 0, literals), SURE, 60, Event(), lambda *_: None)
            timeline = found.timeline or start
            assert validate(timeline) == []
            reached = value_of(one, timeline)
            assert found.bound <= least <= reached, (seed, literals)
            assert reached - found.bound < 1, (seed, literals)
            assert one.objective is Objective.SPAN or reached == least
        blocks += any(len(slot) == 2 for order in timeline.schedule.orders for slot in order)
        fused += one.splittable and len(timeline.schedule.fused) > 0
        for devices in ([0], [one.devices - 1]):
            relaxed = ExactModel(jobs_of(one), ceil(least), 0, devices=devices)
            answer = solve_model(relaxed.cp, Parameters(60, 20, 0, first_solution=True, clauses_only=True), Event())
            assert not answer.infeasible, seed
    assert (blocks > 5, fused > 8) == (True, True), (blocks, fused)


def test_a_relaxed_device_runs_each_pass_as_short_as_it_can_be() -> None:
    """Blocks of 3 and of 7 ticks: forwards of 5 and 9 take 3 and 7, full backwards of 6 take 3; a B of 2 stays."""
    times = {"forward": [5, 9], "backward": [2, 2], "weight": [6, 6], "fused": [6, 6], "overlapped": [3, 7]}
    one = problem(2, 2, placement=[0, 0, 1], times={k: [*v, 1] for k, v in times.items()})
    relaxed, whole = (ExactModel(jobs_of(one), 100, 0, devices=devices).model for devices in ([1], [0, 1]))
    for stage, ticks in ((0, 3), (1, 7)):
        assert relaxed.duration(Operation(F, stage, 0)) == ticks
        backward = Operation(B, stage, 0)
        assert not isinstance(whole.duration(backward), int)
        relaxed.cp.add(relaxed.fused[stage, 0] == 1)
        relaxed.cp.add(relaxed.start[backward] == 0)
        end = relaxed.cp.new_int_var(0, 99, "")
        relaxed.cp.add(end == relaxed.end(backward))
        relaxed.cp.add(end != 3)
    assert solve_model(relaxed.cp, Parameters(10, 5, 0), Event()).infeasible


@pytest.mark.parametrize("counted", (True, False))
def test_work_by_mode_refutes_in_less_work(counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices both ways, memory for two: 168 is the optimum; 162 takes .05 units to refute, and .25 without."""
    if not counted:
        monkeypatch.setattr(exact_model, "post_work", lambda model: {})
    times = {"forward": 5, "backward": 5, "weight": 5, "overlapped": 12}
    one = problem(2, 6, placement="bidirectional", times=times, memory={"capacity": 2})
    model = ExactModel(jobs_of(one), 81, 50)
    answer = solve_model(model.cp, Parameters(60, 0.12, 0, first_solution=True, clauses_only=True), Event())
    assert answer.infeasible is counted


@pytest.mark.parametrize("splits", (True, False))
def test_work_is_counted_only_where_modes_are_open(splits: bool) -> None:
    """On the device that keeps its order, before its first and last forward and backward."""
    times = {"forward": 2, "backward": 3, "overlapped": 4} | ({"weight": 2, "fused": 4} if splits else {})
    plain = {"forward": 2, "backward": 3, "weight": 2}
    assert post_work(ExactModel(jobs_of(problem(2, 3, times=plain)), 100, 0).model) == {}
    found = post_work(ExactModel(jobs_of(problem(2, 3, times=times)), 100, 0, devices=[1]).model)
    assert {where.device: len(work.idle) for where, work in found.items()} == {1: 4}


@pytest.mark.parametrize("most", (0, 40_000))
def test_blocks_that_are_too_many_are_left_out_and_bound_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A known schedule with blocks, better than any without: the model without them says nothing, and is no defect."""
    monkeypatch.setattr(model_variables, "MOST_BLOCKS", most)
    times = {"forward": 10, "backward": 20, "overlapped": 20}
    one = problem(1, 3, times=times)
    known = simulate(one, by_pairs(one))
    model = improving(one, known, measure(known).makespan, 0, -1)
    assert model.bounds_everything == (most > 0)
    found = improve(model, SURE, 60, Event(), lambda *_: None)
    assert found.bound == (measure(known).makespan if most else 0)
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
    assert found.bound == measure(found.timeline).makespan == 10 + 3 * 6 + 15
