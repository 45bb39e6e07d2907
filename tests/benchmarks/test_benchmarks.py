"""The benchmarks: their rows, what they record and print."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine, expert_parallel, growth, memory_saving, parts, random, unequal
from benchmarks.cases.profiles import PROFILES, unit
from benchmarks.reporting.page import END, begin, in_percent, put
from benchmarks.reporting.record import Record, record, record_of, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import BadInput, Disagreement
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.engine.search import Engine
from solver.limits import Limits
from solver.solve import solve
from tests.support.counted import counted
from tests.support.published import ROWS

LIMITS = counted(5)


def a_record(*history: tuple[float, float | None, float], **changes: object) -> Record:
    value, bound = history[-1][1:]
    assert value is not None
    found = Record(
        name="a",
        settings=settings_of(LIMITS),
        status="optimal" if value == bound else "feasible",
        unit="ms",
        value=value,
        bubble=0.1,
        bound=bound,
        gap=(value - bound) / value,
        wall=history[-1][0],
        proved_by="load",
        history=history,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def test_the_profiles_are_the_papers() -> None:
    """Also against the copy that the tests of the schedules keep."""
    ours = {(p.model.upper(), p.p, p.m): p for p in PROFILES}
    for row in ROWS:
        profile = ours[row.model, row.p, row.m]
        for cap in (1, 2):
            assert replace(profile.problem(cap * row.p), name="") == replace(row.problem(cap), name="")
            assert float(profile.published[cap - 1]) == row.bubbles[f"zb-{cap}p"]


@pytest.mark.parametrize("module", (engine, expert_parallel, growth, memory_saving, parts, random, unequal))
def test_every_problem_of_a_suite_is_another_and_named(module: Any) -> None:
    for name, cases in module.SUITE.suites.items():
        problems = [case.problem for case in cases(0)]
        assert len(problems) > 5 and len({problem.name for problem in problems}) == len(problems), name


def test_problems_are_chosen_by_name_kind_or_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*patterns: str) -> int:
        assert engine.SUITE.main(["--list", "--problems", *patterns]) == 0
        return len(capsys.readouterr().out.splitlines())

    assert (listed("*"), listed("uneven-8"), listed("2p, makespan"), listed("v-*", "below 1p")) == (97, 1, 12, 14)
    assert engine.SUITE.main(["--problems", "unevn"]) == 2
    assert "found 'unevn'" in (said := capsys.readouterr().err) and "did you mean 'uneven'" in said


def test_percentages_never_round_a_gap_to_nothing() -> None:
    assert [in_percent(share) for share in (None, 0, 0.00281, 4e-6)] == ["", "0.00", "0.28", "0.0004"]


def test_a_solution_is_recorded_and_read_back() -> None:
    problem = unit(2, 4, "span")
    solution = solve(problem, LIMITS)
    found = record("row", solution, LIMITS)
    assert (found.value, found.bound, found.gap, found.status) == (13, 13, 0, "optimal")
    assert found.proof is not None and found.seconds_to(1) <= found.proof <= found.wall  # type: ignore[operator]
    assert record_of(json.loads(json.dumps(found.document()))) == found


def test_results_outlive_the_run_and_count_only_for_their_settings(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    Store(path, "here").add("row", a_record((1.0, 100.0, 50.0)))
    Store(path, "here")  # one that is not loaded changes nothing
    store = Store(path, "here")
    store.load()
    assert store.has("row", settings_of(LIMITS))
    assert not store.has("row", settings_of(replace(LIMITS, seconds=31)))
    assert not store.has("other", settings_of(LIMITS))
    assert list(store.under(settings_of(LIMITS))) == ["row"]
    assert store.under(settings_of(replace(LIMITS, workers=2))) == {}
    store.add("row", a_record((1.0, 100.0, 50.0), error="Disagreement: x"))
    assert not store.has("row", settings_of(LIMITS))
    path.write_text('{"rows": [1]}')
    with pytest.raises(BadInput, match=r"results\.json: found something else"):
        Store(path, "here").load()


def test_a_table_replaces_only_its_own_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{begin('a')}\nold\n{END}\nbetween\n{begin('b')}\n{END}\nafter\n")
    put(page, "a", "new")
    put(page, "a", "newer\n")
    assert page.read_text() == f"before\n{begin('a')}\nnewer\n{END}\nbetween\n{begin('b')}\n{END}\nafter\n"
    with pytest.raises(BadInput, match=r"page\.md: found no place"):
        put(page, "c", "new")


def test_every_benchmark_has_its_place_in_the_docs() -> None:
    results = Path(__file__).parents[2] / "docs" / "results"
    for module, page in (("engine", "published"), ("ablation", "ablation")):
        assert f"{begin(f'python -m benchmarks.{module}')}\n" in (results / f"{page}.md").read_text()


def test_a_run_is_resumed_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*problems: str) -> int:
        kept = ["--results", str(tmp_path / "results.json"), "--resume", "--units", "5"]
        return engine.SUITE.main([*kept, "--problems", *problems])

    assert run("unit-p4-m8-span") == 0
    assert "1 problems: 1 proved optimal" in capsys.readouterr().out

    def broken(problem: Problem, limits: Limits, engine: Engine) -> Solution:
        raise Disagreement("value below bound")

    monkeypatch.setattr("benchmarks.reporting.record.solve", broken)
    assert run("unit-p4-m8-span") == 0  # nothing left to solve
    assert run("unit-p4-m8-*") == 1
    out = capsys.readouterr().out
    assert "| unit-p4-m8-makespan | makespan | none | Disagreement: value below bound |" in out
    assert "2 problems: 1 proved optimal" in out


def test_a_part_beyond_the_chain_is_solved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = ["--results", str(tmp_path / "results.json"), "--units", "5"]
    assert parts.SUITE.main([*kept, "--only", "vision encoder, own"]) == 0
    assert "| vision encoder, own-device | 442 | none | 442 | 0.00 |" in capsys.readouterr().out
