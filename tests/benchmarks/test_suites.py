"""What benchmarks measure: drawn suites; counts that pages show."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.cases.drawn_problems import COUNT, drawn_problems
from benchmarks.cases.drawn_tasks import drawn_tasks
from benchmarks.cases.random_problems import random_problems
from benchmarks.proofs import bound_attack
from benchmarks.random import SUITE, kind_of
from benchmarks.reporting.page import END, begin
from pipesched.problem.problem import Objective, Problem


def test_a_seed_draws_the_same_problems_and_another_seed_others() -> None:
    drawn, again, other = random_problems(0), random_problems.__wrapped__(0), random_problems(1)
    assert drawn == again
    assert [problem.name for problem in drawn] == [problem.name for problem in other]
    assert len({problem.name for problem in drawn}) == len(drawn)
    assert any(one != another for one, another in zip(drawn, other, strict=True))


@pytest.mark.parametrize(("draw", "count"), [(drawn_problems, COUNT), (drawn_tasks, 20)])
def test_a_suite_is_drawn_anew_for_each_seed_and_the_same_for_one(
    draw: Callable[[int], tuple[Problem, ...]], count: int
) -> None:
    drawn, again, other = draw(5), draw(5), draw(6)
    assert drawn == again and len(drawn) == count == len({problem.name for problem in drawn})
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


def test_a_name_that_no_problem_has_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert SUITE.main(["--problems", "linaer*", "--results", str(tmp_path / "found.json")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


ROOT = Path(__file__).resolve().parents[2]
PROOFS = ROOT / "benchmarks/proofs"


def kept(file: str) -> Any:
    return json.loads((PROOFS / file).read_text(encoding="utf-8"))


def table_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") or line.endswith("problems in all.")]


def test_the_table_is_of_the_counts_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/results/bound-attack.md").read_text(encoding="utf-8")
    shown = page.partition(begin(bound_attack.COMMAND))[2].partition(END)[0]
    assert table_rows(shown) == table_rows(bound_attack.markdown(kept("bound_attack.json"), "here")) != []


def test_plans_that_were_proved_are_those_that_are_kept() -> None:
    proved = kept("plan_attack.json")["all"]["proved"]
    assert f"{proved} plans were proved in the work given" in (ROOT / "docs/proofs.md").read_text(encoding="utf-8")
