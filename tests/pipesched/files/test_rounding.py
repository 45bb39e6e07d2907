"""Numbers as programs write them: floats of seventeen digits, NumPy's numbers and arrays, times too large to add up."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import as_decimal
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.files.problems.document import problem_document
from pipesched.files.rounding import step_of
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.problem.fused_dominance import fused_is_dominated
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import finer
from pipesched.simulation.simulator import simulate
from solver.planning.plan import plan
from solver.solve import solve
from tests.support.columns import costs_of
from tests.support.counted import counted
from tests.support.makers import problem, random_order

LIMITS = counted(1)


def noisy(rng: Random, devices: int, microbatches: int) -> dict[str, object]:
    """A document whose numbers a program computed: `json` writes them with up to seventeen digits."""

    def numbers(scale: float) -> list[float]:
        return [scale * (1 + rng.random()) / 3 for _ in range(devices)]

    scale = 10 ** rng.uniform(-6, 6)
    times = {key: numbers(scale) for key in ("forward", "backward", "weight")} | {"transfer": 0.1 * scale}
    memory = {"activation": numbers(1.0), "freed_by_backward": [0.1 + 0.2] * devices, "capacity": 2.5 + 0.1}
    return {"devices": devices, "microbatches": microbatches, "times": times, "memory": memory}


def read_json(document: dict[str, object], folder: Path) -> Problem:
    path = folder / "profile.json"
    path.write_text(json.dumps(document))
    return read_problem(path)


@pytest.mark.parametrize("seed", range(20))
def test_every_rounded_number_keeps_a_billionth_of_the_largest(seed: int, tmp_path: Path) -> None:
    document = noisy(Random(seed), 3, 8)
    one = read_json(document, tmp_path)
    given = document["times"]
    assert isinstance(given, dict) and one.splittable
    largest = max(max(given[key]) for key in ("forward", "backward", "weight"))
    for key in ("forward", "backward", "weight"):
        for ticks, number in zip(getattr(costs_of(one), key), given[key], strict=True):
            assert abs(ticks * one.tick - Fraction(str(number))) <= Fraction(largest) / 10**9
    assert costs_of(one).fused == tuple(
        b + w for b, w in zip(costs_of(one).backward, costs_of(one).weight, strict=True)
    )
    assert 8 * sum(map(sum, (costs_of(one).forward, costs_of(one).fused, costs_of(one).transfer))) < 2**50
    assert len(one.notes) == 1 and "rounded: times to" in one.notes[0] and "memory to" in one.notes[0]


@pytest.mark.parametrize("seed", range(10))
def test_a_rounded_problem_is_read_back_the_same(seed: int, tmp_path: Path) -> None:
    one = read_json(noisy(Random(seed), 3, 8), tmp_path)
    again = problem_from(problem_document(one), "again", one.name)
    assert again == one and not again.notes
    timeline = simulate(one, random_order(one, Random(seed)))
    path = tmp_path / "schedule.json"
    path.write_text(to_text(ScheduleFile(timeline)))
    assert read_schedule(path).timeline == timeline


def test_rounding_up_to_a_power_of_ten_is_read_back_the_same() -> None:
    """Ten digits of 9.99… become 10, whose tenth digit is another."""
    times = {"forward": Decimal("9.99999999999999999"), "backward": Decimal("0.123456789012345678")}
    one = problem(200, 2000, times=times)
    assert one.notes and problem_from(problem_document(one), "again", one.name) == one


@pytest.mark.parametrize("most_steps", [2**40, 2**53])
def test_rounded_sums_have_few_enough_steps_and_are_read_back_the_same(most_steps: int) -> None:
    digits = Counter[int]()
    for seed in range(300):
        random = Random(seed)
        numbers = [Fraction(random.randrange(10**17), 10 ** random.randint(0, 17)) for _ in range(random.randint(1, 4))]
        times = 10 ** random.randint(0, 6)
        step = step_of(numbers, times * sum(numbers), most_steps=most_steps)
        rounded = [round(number / step.size) * step.size for number in numbers]
        assert times * sum(rounded) <= most_steps * step.size
        again = step_of(rounded, times * sum(rounded), most_steps=most_steps)
        assert not again.rounds and again.size % step.size == 0
        if step.rounds:
            (note,) = step.note("times")
            share = float(note.removesuffix(" of the largest").rpartition(", ")[2])
            assert share == pytest.approx(float(step.size / max(numbers)), rel=0.06)
            digits[len(str(round(max(numbers) / step.size)))] += 1
    assert digits[10] > 20 and (digits[7] > 20 or most_steps == 2**53), digits


def test_the_note_says_the_share_that_a_long_plan_keeps() -> None:
    layers = [{"name": "block", "count": 500, "forward": 1.23456789012345678, "backward": 2, "activation": 1}]
    one = plan_problem_from({"devices": 2, "microbatches": 10_000, "layers": layers})
    (note,) = one.notes
    assert "times to multiples of 0.0001, 5e-05 of the largest" in note


def test_a_large_capacity_rounds_no_activation_away() -> None:
    taken = Decimal("1.23456789012345678")
    one = problem(2, 2, memory={"activation": taken, "capacity": 10**8})
    assert abs(one.stages[0].activation * one.units.resolution - Fraction(taken)) <= Fraction(2, 10**9)


def test_decimals_that_fit_stay_exact() -> None:
    one = problem(8, 24, times={"forward": Decimal("18.52200001"), "backward": 0.1 + 0.2, "weight": Decimal("9.3")})
    assert one.tick * one.stages[0].forward == Fraction("18.52200001")
    few = problem(1, 1, times={"forward": 1.000000000000001, "backward": 1})
    assert not few.notes and few.tick * few.stages[0].forward == Fraction("1.000000000000001")


def test_what_fits_into_memory_fits_after_rounding() -> None:
    for seed in range(200):
        rng = Random(seed)
        taken = Decimal(repr(rng.random())) + Decimal("1e-17")
        given = taken * Decimal(rng.randrange(100)) / 100
        one = problem(2, 9, memory={"activation": taken, "freed_by_backward": given, "capacity": 5 * taken - 2 * given})
        stage, room = one.stages[0], one.room[0]
        assert room is not None
        assert 5 * stage.activation - 2 * stage.freed <= room
        assert 6 * stage.activation - 2 * stage.freed > room


def test_a_fused_backward_does_not_become_cheaper_than_its_parts() -> None:
    for seed in range(200):
        rng = Random(seed)
        times = {key: Decimal(repr(rng.random())) for key in ("forward", "backward", "weight")}
        one = problem(2, 1000, times=times | {"fused": times["backward"] + times["weight"]})
        assert one.notes and fused_is_dominated(one, 0)


def test_numbers_of_numpy() -> None:
    plain = problem(2, 3, times={"forward": [1.5, 2.0], "backward": 1, "weight": [0.1, 0.2]})
    given = {"forward": np.array([1.5, 2.0]), "backward": np.int64(1), "weight": (np.float32(0.1), np.float64(0.2))}
    assert problem(2, 3, times=given) == plain
    assert problem_from({"devices": np.int64(2), "microbatches": np.int32(3), "times": given}, "t", "test") == plain


@pytest.mark.parametrize("value", [np.float64("nan"), np.bool_(True), np.array([[1.0]]), np.array(["x"]), float("inf")])
def test_what_is_no_number(value: object) -> None:
    with pytest.raises(BadInput, match=r"^test: times\.forward.*: found .*"):
        problem(1, 1, times={"forward": value, "backward": 1})


def test_a_capacity_beyond_all_sums_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^test: memory\.capacity: found 1000000000000\.0"):
        problem(2, 2, memory={"activation": Decimal("1e-12"), "capacity": 10**12})


def test_times_too_large_to_add_up_are_refused_before_the_search() -> None:
    with pytest.raises(BadInput, match=r"test: times: found .* ticks in all"):
        solve(finer(problem(2, 3), 2**60), LIMITS)


def test_solve_of_measured_floats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = noisy(Random(3), 2, 4) | {"objective": "span"}
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(document))
    assert main(["solve", str(path), "--json", "--time-limit", "2", "--workers", "1", "-o", str(tmp_path / "out")]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert "rounded" in found["notes"][0] and found["notes"][0] in output.err
    assert main(["validate", str(tmp_path / "out" / "schedule.json")]) == 0


def test_zero_lengths_beside_long_times_are_left_out_of_cp_sat() -> None:
    one = problem(2, 40, times={"forward": [0, Decimal("1.23456789012")], "backward": 10**3, "weight": 0})
    found = solve(replace(one, notes=()), counted(0.1))
    assert found.value_ticks is not None and as_decimal(found.value_ticks * one.tick)


def test_times_of_a_plan_that_lost_partitions_in_their_exact_ticks_are_rounded() -> None:
    """With sums of 5e13 ticks CP-SAT proved a bound of 5209 for a placement on which a plan takes 4849."""
    layers = [
        {"name": "embedding", "forward": 401.11300000017, "backward": 319.115, "activation": 1},
        {"name": "block", "count": 3, "forward": 45.4033, "backward": 654.965376128962, "activation": 1},
        {"name": "head", "forward": 0.571048, "backward": 656.68082986997, "activation": 1},
    ]
    document = {"devices": 2, "microbatches": 2, "layers": layers, "transfer": 50.6220288659}
    one = plan_problem_from(document)
    assert one.tick == Fraction(1, 10**7) and "rounded: times to" in one.notes[0]
    found = plan(one, counted(2))
    assert not any("DEFECT" in note for note in found.notes)
    assert found.value is not None and found.lower_bound <= Fraction("4849.4915574") <= found.value + 1
