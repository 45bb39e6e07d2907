"""Measured traces: prediction, replay and measurement side by side, and problems solved again with measured times."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.measurement.calibration import seconds_per_unit, with_measured_times
from pipesched.measurement.comparison import compared
from pipesched.measurement.trace import Measured, MeasuredPass, Step, to_text
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from tests.support.columns import costs_of
from tests.support.makers import problem, schedule, waits

TIMES = {"forward": [2, 3], "backward": [3, 2], "weight": [1, 2], "transfer": 1}
MS = {"time_unit": "ms", "times": TIMES}


def step_of(one: Problem, orders: Schedule, milliseconds: Callable[[Pass], float], late: float = 0.0) -> Step:
    """A step as a machine would run it whose passes take these times, and whose last pass ends `late` ms late."""
    starts: dict[Pass, float] = {}
    ends: dict[Pass, float] = {}
    queues = [list(order) for order in orders.orders]
    free, needs = [0.0] * one.devices, waits(one, orders.is_fused)
    while any(queues):
        for device, queue in enumerate(queues):
            while queue and all(before in ends for before, _ in needs[queue[0][0]]):
                (p,) = queue.pop(0)
                ready = [ends[before] + float(lag * one.tick) for before, lag in needs[p]]
                starts[p] = max([free[device], *ready])
                free[device] = ends[p] = starts[p] + milliseconds(p)
    last = max(ends, key=ends.__getitem__)
    starts[last], ends[last] = starts[last] + late, ends[last] + late
    return tuple(tuple(MeasuredPass(p, starts[p] / 1000, ends[p] / 1000) for (p,) in order) for order in orders.orders)


def planned(one: Problem) -> Callable[[Pass], float]:
    return lambda p: one.in_units(one.duration(p))


def trace(one: Problem, name: str, *steps: Step, split: str = "store") -> Measured:
    return Measured(one, name, steps, split=split, seconds_per_unit=0.001)


@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "gpipe"])
def test_a_machine_that_keeps_to_the_plan_is_predicted_and_replayed_to_the_dot(name: str) -> None:
    one = problem(2, 4, **MS)
    orders = HEURISTICS[name].order(one)
    found = compared(trace(one, name, step_of(one, orders, planned(one))), one)
    expected = one.in_units(measure(simulate(one, orders)).makespan_ticks) / 1000
    for value in (found.predicted, found.replayed, found.measured, found.best):
        assert value == pytest.approx(expected, rel=1e-9)
    for device in found.devices:
        assert device.measured_work == pytest.approx(device.predicted_work)
        assert device.measured_end == pytest.approx(device.predicted_end) == pytest.approx(device.replayed_end)


@pytest.mark.parametrize("seed", range(10))
def test_replay_explains_durations_and_leaves_what_the_runtime_adds(seed: int) -> None:
    one = problem(2, 4, **MS)
    orders = HEURISTICS["zb-h1"].order(one)
    rng = Random(seed)
    takes = {p: rng.uniform(1, 9) for p in orders.passes()}
    found = compared(trace(one, "zb-h1", step_of(one, orders, takes.__getitem__, late=5.0)), one)
    assert found.measured - found.replayed == pytest.approx(0.005)
    assert found.predicted == pytest.approx(one.in_units(measure(simulate(one, orders)).makespan_ticks) / 1000)
    work = [sum(takes[p] for p in orders.passes_on(d)) / 1000 for d in range(2)]
    assert [device.measured_work for device in found.devices] == pytest.approx(work)


def test_a_problem_takes_the_medians_of_each_stage_and_keeps_the_rest() -> None:
    one = problem(2, 4, **MS, memory={"capacity": 9, "activation": 2, "freed_by_backward": 1}, objective="span")
    orders = HEURISTICS["zb-h1"].order(one)
    takes = {
        (F, 0): 2.5, (F, 1): 3.5, (B, 0): 4.0, (B, 1): 2.0004, (W, 0): 1.0, (W, 1): 2.0, (BW, 0): 9.0,
        (BW, 1): 6.0,
    }  # fmt: skip
    usual = step_of(one, orders, lambda p: takes[p.kind, p.stage])
    slow = step_of(one, orders, lambda p: 3 * takes[p.kind, p.stage])
    again = with_measured_times(one, trace(one, "zb-h1", usual, usual, slow))
    assert [again.in_units(t) for t in costs_of(again).forward] == [2.5, 3.5]
    assert [again.in_units(t) for t in costs_of(again).backward] == [4.0, 2.0]  # rounded to a microsecond
    assert again.splittable
    assert [again.in_units(t) for t in costs_of(again).weight] == [1.0, 2.0]
    assert [again.in_units(t) for t in costs_of(again).transfer] == [1, 1]
    assert (again.pools, again.objective, again.placement) == (one.pools, one.objective, one.placement)
    assert [(s.activation, s.freed) for s in again.stages] == [(s.activation, s.freed) for s in one.stages]


def test_what_a_trace_does_not_hold_is_scaled_as_its_stage_was() -> None:
    one = problem(2, 4, **MS)
    orders = HEURISTICS["1f1b"].order(one)  # no B, no W
    again = with_measured_times(
        one, trace(one, "1f1b", step_of(one, orders, lambda p: (2, 3)[p.stage] * planned(one)(p)))
    )
    assert [again.in_units(t) for t in costs_of(again).backward] == [6, 6]
    assert again.splittable
    assert [again.in_units(t) for t in costs_of(again).weight] == [2, 6]
    assert [again.in_units(t) for t in costs_of(again).fused] == [8, 12]


def test_units_come_from_the_trace_or_the_name() -> None:
    one = problem(1, 1, time_unit="slots")
    with pytest.raises(BadInput, match="time_unit: found 'slots'"):
        seconds_per_unit(one)
    told = Measured(one, "x", (((),),), seconds_per_unit=0.02)
    assert seconds_per_unit(one, told) == Fraction(1, 50)
    assert seconds_per_unit(problem(1, 1, time_unit="s"), told) == 1  # of another problem in another unit


def test_a_trace_of_another_pipeline_is_refused() -> None:
    one, other = problem(2, 4, **MS), problem(2, 3, **MS)
    measured = trace(one, "1f1b", step_of(one, HEURISTICS["1f1b"].order(one), planned(one)))
    with pytest.raises(BadInput, match="does not match"):
        compared(measured, other)
    with pytest.raises(BadInput, match="2 stages; test has 3"):
        with_measured_times(problem(3, 4), measured)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A problem file and a trace of zb-h1 in which device 1 is half as fast as planned."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps({"devices": 2, "microbatches": 4, **MS}))
    from pipesched.files.problem_file import read_problem

    one = read_problem(path)
    orders = HEURISTICS["zb-h1"].order(one)
    measured = tmp_path / "measured.json"
    measured.write_text(to_text(trace(one, "zb-h1", step_of(one, orders, lambda p: (1 + p.stage) * planned(one)(p)))))
    return str(path), str(measured)


def test_compare_sets_a_trace_beside_its_prediction(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    plan, measured = files
    assert main(["compare", plan, "--measured", measured, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["schedule"] == "zb-h1"
    assert row["replayed"] == pytest.approx(row["measured"])
    assert row["devices"][0]["measured_work"] == pytest.approx(row["devices"][0]["predicted_work"])
    assert row["devices"][1]["measured_work"] == pytest.approx(2 * row["devices"][1]["predicted_work"])
    assert main(["compare", "--measured", measured, measured]) == 0
    said = capsys.readouterr().out
    assert "device by device" in said
    assert "+0.00 %" in said


def test_the_prediction_knows_that_autograd_does_not_split_the_first_stage(tmp_path: Path) -> None:
    from commands.reports.measured.measured_table import comparisons

    one = problem(2, 2, time_unit="ms")
    orders = schedule("F0.0 B0.0 F0.1 W0.0 B0.1 W0.1", "F1.0 B1.0 F1.1 B1.1 W1.0 W1.1")

    def really(p: Pass) -> float:
        whole = {(B, 0): 0.0, (W, 0): 2.0}
        return whole.get((p.kind, p.stage), planned(one)(p))

    path = tmp_path / "measured.json"
    path.write_text(to_text(trace(one, "zb-h1", step_of(one, orders, really), split="autograd")))
    found = comparisons([str(path)], None)[0].times
    assert found.predicted == pytest.approx(found.measured)
    assert found.measured == pytest.approx(0.008)
    assert one.in_units(measure(simulate(one, orders)).makespan_ticks) == 9


def test_solve_again_with_measured_times_is_one_flag(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, measured = files
    by_hand = tmp_path / "hand.yaml"
    times = {"forward": [2, 6], "backward": [3, 4], "weight": [1, 4], "transfer": 1}
    by_hand.write_text(json.dumps({"devices": 2, "microbatches": 4, "time_unit": "ms", "times": times}))
    sure = ["--workers", "1", "--time-limit", "60", "--json"]
    assert main(["solve", plan, "--measured", measured, *sure]) == 0
    again = json.loads(capsys.readouterr().out)
    assert main(["solve", str(by_hand), *sure]) == 0
    expected = json.loads(capsys.readouterr().out)
    assert (again["status"], again["value"]) == (expected["status"], expected["value"])
