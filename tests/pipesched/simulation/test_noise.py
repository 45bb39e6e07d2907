"""Schedules under random durations: against times worked out another way, against statistics, and as typed."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.errors import Deadlock
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.problem.problem import Objective
from pipesched.schedule.metrics import measure
from pipesched.simulation.noise import under_noise
from pipesched.simulation.sampled_durations import run_under
from pipesched.simulation.simulator import simulate
from tests.support.in_turn import in_turn
from tests.support.makers import problem, random_order, random_problem, schedule, waits

FOUR = {"forward": [1, 3, 2, 2], "backward": [2, 1, 3, 1], "weight": [1, 2, 1, 2], "transfer": 1}


@in_turn("seed", range(20))
def test_without_noise_every_sample_is_the_simulators_value(seed: int) -> None:
    rng = Random(seed)
    one = random_problem(rng, blocks=True, parts=True)
    orders = random_order(one, rng, pairs=0.3)
    timeline = simulate(one, orders)
    found = under_noise(timeline, 0.0, 3, seed)
    metrics = measure(timeline)
    assert list(found.makespan.samples) == [metrics.makespan_ticks] * 3
    assert list(found.span.samples) == [metrics.span_ticks] * 3
    assert found.of(Objective.SPAN).nominal == metrics.span_ticks


@in_turn("seed", range(20))
def test_a_replay_with_times_of_its_own_for_each_pass(seed: int) -> None:
    """Against relaxation to a fixed point: nothing starts before what it waits for and its device allow."""
    rng = Random(seed)
    one = problem(3, 4, times={**FOUR, **{key: FOUR[key][:3] for key in ("forward", "backward", "weight")}})
    orders = random_order(one, rng)
    takes = {p: rng.randint(0, 9) for p in orders.passes()}
    ends = dict.fromkeys(takes, 0)
    needs = waits(one, orders.is_fused)
    while True:
        old = dict(ends)
        for order in orders.orders:
            free = 0
            for (p,) in order:
                ready = [ends[before] + lag for before, lag in needs[p]]
                free = ends[p] = max([free, *ready]) + takes[p]
        if ends == old:
            break
    reach = run_under(one, orders, lambda tasks, _: float(takes[tasks[0].of]))
    assert reach.makespan[0] == max(ends.values())
    assert list(reach.last[:, 0]) == [max(ends[p] for p in orders.passes_on(d)) for d in range(3)]


def test_an_order_that_locks_is_found() -> None:
    with pytest.raises(Deadlock):
        run_under(problem(1, 1), schedule("W0.0 F0.0 B0.0"), lambda *_: 1.0)


def test_the_same_seed_gives_the_same_samples_and_more_of_them_begin_alike() -> None:
    timeline = simulate(problem(4, 6, times=FOUR), HEURISTICS["zb-h1"].order(problem(4, 6, times=FOUR)))
    once, again, more = (under_noise(timeline, 0.1, n, 7).makespan.samples for n in (300, 300, 600))
    other = under_noise(timeline, 0.1, 300, 8).makespan.samples
    assert np.array_equal(once, again)
    assert np.array_equal(once[:250], more[:250])
    assert not np.array_equal(once, other)


def test_a_pass_has_the_same_factors_in_every_schedule() -> None:
    """One device computes the same passes in any order: the sums agree to rounding, sample by sample."""
    one = problem(1, 3)
    first = simulate(one, schedule("F0.0 F0.1 F0.2 B0.0 W0.0 B0.1 W0.1 B0.2 W0.2"))
    second = simulate(one, schedule("F0.0 B0.0 F0.1 W0.0 B0.1 F0.2 W0.1 B0.2 W0.2"))
    samples = [under_noise(timeline, 0.3, 50, 1).makespan.samples for timeline in (first, second)]
    assert np.allclose(*samples, rtol=1e-12)


def test_mean_and_deviation_are_those_asked_for() -> None:
    one = problem(1, 1, times={"forward": 3, "backward": 1, "weight": 2})
    samples = under_noise(simulate(one, schedule("F0.0 B0.0 W0.0")), 0.2, 20000, 0).makespan.samples
    deviation = 0.2 * np.sqrt(3**2 + 1**2 + 2**2)
    assert samples.mean() == pytest.approx(6, abs=4 * deviation / np.sqrt(20000))
    assert samples.std() == pytest.approx(deviation, rel=0.05)
    assert samples.min() > 0


def test_a_device_that_is_held_back_stays_so() -> None:
    one = problem(2, 2, times={"forward": 2, "backward": 2, "weight": 2})
    orders = HEURISTICS["zb-h1"].order(one)
    soon, held = simulate(one, orders), simulate(one, orders, not_before=[5, 0])
    assert held.start(orders.orders[0][0][0]) == 5
    assert list(under_noise(held, 0.0, 1, 0).span.samples) == [measure(held).span_ticks]
    assert measure(held).makespan_ticks != measure(soon).makespan_ticks


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text("{devices: 2, microbatches: 3, time_unit: ms, times: {forward: 1.5, backward: 1.5, weight: 0.5}}")
    return str(path)


def test_simulate_says_how_the_makespan_spreads(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "noise.svg"
    flags = ["--noise", "5%", "--samples", "40", "--seed", "3", "-o", str(picture)]
    assert main(["simulate", small, *flags]) == 0
    said = capsys.readouterr().out
    assert "40 samples, seed 3" in said
    assert "95th" in said
    assert "Without noise" in picture.read_text()
    assert main(["simulate", small, *flags, "--json"]) == 0
    noise = json.loads(capsys.readouterr().out)["noise"]
    assert noise["relative_standard_deviation"] == 0.05
    assert noise["makespan"]["nominal"] == 14.0
    assert noise["makespan"]["p5"] < noise["makespan"]["median"] < noise["makespan"]["p95"]
    assert main(["simulate", small, *flags[:1], "0.05", *flags[2:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["noise"] == noise


def test_simulate_takes_a_schedule_file_alone_or_on_another_problem(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from pipesched.files.problem_file import read_problem

    one = read_problem(small)
    path = tmp_path / "schedule.json"
    path.write_text(to_text(ScheduleFile(simulate(one, HEURISTICS["zb-h1"].order(one)))))
    assert main(["simulate", str(path), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert main(["simulate", small, "--schedule", "zb-h1", "--json"]) == 0
    named = json.loads(capsys.readouterr().out)
    assert alone == named
    slower = tmp_path / "slower.yaml"
    slower.write_text(Path(small).read_text().replace("1.5", "3").replace("0.5", "1"))
    assert main(["simulate", str(slower), "--schedule", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan"] == 2 * named["makespan"]


def test_compare_shows_heuristics_and_the_best_under_the_same_noise(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "noise.png"
    search = ["--schedules", "1f1b,zb-h1", "--workers", "1", "--time-limit", "30"]
    noise = ["--noise", "0.1", "--samples", "30", "-o", str(picture)]
    assert main(["compare", small, *search, *noise, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["noise"]["schedules"]) == {"1f1b", "zb-h1", "pipesched"}
    for row in found["rows"]:
        assert found["noise"]["schedules"][row["schedule"]]["nominal"] == row["value"]
    assert picture.stat().st_size > 1000
    assert main(["compare", small, "--no-optimal", "--schedules", "1f1b", "--noise", "0.1"]) == 0
    assert "makespan under noise" in capsys.readouterr().out
