"""The benchmark of random problems: what is drawn, with which seed, and its tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.cases.drawn_problems import COUNT, drawn_problems
from benchmarks.cases.random_problems import random_problems
from benchmarks.random import kind_of, main, page_text
from benchmarks.reporting.record import Record, failed
from pipesched.problem.problem import Objective, Problem
from solver.limits import Limits

LIMITS = Limits(seconds=1, workers=1)


def test_a_seed_draws_the_same_problems_and_another_seed_others() -> None:
    drawn, again, other = random_problems(0), random_problems.__wrapped__(0), random_problems(1)
    assert drawn == again
    assert [problem.name for problem in drawn] == [problem.name for problem in other]
    assert len({problem.name for problem in drawn}) == len(drawn)
    assert any(one != another for one, another in zip(drawn, other, strict=True))


def test_a_suite_is_drawn_anew_for_each_seed_and_the_same_for_one() -> None:
    drawn, again, other = drawn_problems(5), drawn_problems(5), drawn_problems(6)
    assert drawn == again and len(drawn) == COUNT == len({problem.name for problem in drawn})
    assert not {replace(one, name="") for one in drawn} & {replace(one, name="") for one in other}
    assert [kind_of(one).partition(",")[0] for one in drawn] == [kind_of(one).partition(",")[0] for one in other]


def test_suites_have_what_a_user_may_have() -> None:
    every = [problem for seed in range(4) for problem in drawn_problems(seed)]
    kinds = {kind_of(problem) for problem in every}
    plain = {"linear", "v-shape", "interleaved", "wave", "bidirectional"}
    assert kinds == plain | {f"{placement}, blocks" for placement in ("linear", "v-shape", "bidirectional")}
    assert {problem.devices % 2 for problem in every} == {0, 1}
    assert {problem.objective for problem in every} == {Objective.MAKESPAN, Objective.SPAN}
    ratios = [(stage.weight or 0) / stage.backward for problem in every for stage in problem.stages if stage.backward]
    assert max(ratios) > 1.2 and any(0 < ratio < 0.5 for ratio in ratios)
    assert any(not problem.splittable for problem in every)
    assert any("cheaper fused" in problem.name for problem in every)
    shares = [float(one.name.partition("memory ")[2].split()[0]) for one in every if "unlimited" not in one.name]
    assert min(shares) < 0.45 and 1.9 < max(shares) <= 2
    assert len(shares) < len(every)
    assert any(len({link for row in problem.links for link in row}) > 2 for problem in every)


def test_stage_times_keep_to_their_spread_and_only_the_head_takes_longer() -> None:
    for problem in _named("linear, 1p p=8*", "V p=8 m=24 memory 9", "wave, 4 chunks p=4*"):
        *others, head = ([stage.forward, stage.backward, stage.weight] for stage in problem.stages)
        units = [Fraction(ticks or 0) * problem.tick for stage in others for ticks in stage]
        assert all(Fraction("8.8") <= one <= Fraction("11.2") for one in units)
        assert all(Fraction("8.8") <= ticks * problem.tick <= Fraction("16.8") for ticks in head if ticks is not None)


def test_blocks_and_full_backwards_take_the_share_that_their_class_asks_for() -> None:
    for problem in _named("bidirectional, blocks*"):
        shares = [Fraction(s.overlapped or 0, s.forward + s.fused) for s in problem.stages]
        assert all(Fraction("0.74") < one < Fraction("0.81") for one in shares)
    for problem in _named("linear, cheaper fused p*"):
        shares = [Fraction(s.fused, s.backward + (s.weight or 0)) for s in problem.stages]
        assert all(Fraction("0.79") < one < Fraction("0.91") for one in shares)
    for problem in _named("linear, fused only*"):
        assert not problem.splittable


def test_the_table_counts_what_was_proved_and_how_far_apart_the_rest_is() -> None:
    every = random_problems(0)[:3]
    found = [
        _record(every[0], value=100.0, bound=100.0, status="optimal"),
        _record(every[1], value=100.0, bound=98.0, status="feasible"),
        failed(every[2].name, LIMITS, every[2], 1.0, ValueError("broken")),
    ]
    text = page_text(every, {one.name: one for one in found}, "here")
    lines = [line for line in text.splitlines() if line.startswith("| linear,")]
    assert len(lines) == 2  # not the one that is proved
    assert "| 2.00 |" in lines[0]
    assert "broken" in lines[1]
    assert "3 problems: 1 proved optimal, 1 within 1 %, 2 within 3 %" in text
    assert "(2), takes 1.50 times" in text
    assert "| linear | 2 | 1 | 1.00 | 1.00 | 2.00 |" in text


def test_a_name_that_no_problem_has_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--problems", "linaer*", "--results", str(tmp_path / "found.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def _named(*patterns: str) -> list[Problem]:
    begins = tuple(pattern.removesuffix("*") for pattern in patterns)
    found = [problem for problem in random_problems(0) if problem.name.startswith(begins)]
    assert found
    return found


def _record(problem: Problem, value: float, bound: float, status: str) -> Record:
    nothing = failed(problem.name, LIMITS, problem, 1.0, ValueError())
    return replace(
        nothing,
        status=status,
        value=value,
        bound=bound,
        gap=(value - bound) / value,
        proved_by="load",
        published=150.0,
        error="",
    )
