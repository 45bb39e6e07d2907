"""The benchmarks: their rows, what they record and print."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import engine, parts
from benchmarks.cases.profiles import PROFILES, unit
from benchmarks.cases.rows import GROUPS, rows, select
from benchmarks.reporting.engine_table import in_percent, percent
from benchmarks.reporting.page import END, begin, link_to, put
from benchmarks.reporting.record import Record, record, record_of, settings_of
from benchmarks.reporting.store import Store
from pipesched.errors import BadInput, Disagreement
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from solver.engine.search import Engine
from solver.limits import Limits
from solver.solve import solve
from tests.support.published import ROWS

LIMITS = Limits(seconds=30, workers=1, deterministic=5)


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
        first=None,
        best=None,
        proof=None,
        wall=history[-1][0],
        proved_by="load",
        greedy=None,
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


def test_rows_are_chosen_by_name_group_or_pattern() -> None:
    names = [row.name for row in rows()]
    assert len(set(names)) == len(names)
    assert {row.group for row in rows()} == set(GROUPS)
    assert all(row.problem.name == row.name for row in rows())
    assert [row.name for row in select("uneven-8")] == ["uneven-8"]
    assert len(select("1p")) == len(select("2p")) == 12
    assert len(select("makespan")) == 24
    assert {row.group for row in select("v-*,caps")} == {"v", "caps"}
    with pytest.raises(BadInput, match=r"found 'unevn'.*did you mean 'uneven'"):
        select("caps,unevn")


def test_percentages_never_round_a_gap_to_nothing() -> None:
    assert [percent(share) for share in (None, 0, 0.00281, 4e-6)] == ["", "0.00 %", "0.28 %", "0.0004 %"]
    assert [in_percent(share) for share in (None, 4e-6)] == ["", "0.0004"]


def test_a_solution_is_recorded_and_read_back() -> None:
    problem = unit(2, 4, "span")
    solution = solve(problem, LIMITS)
    found = record("row", solution, LIMITS)
    assert (found.value, found.bound, found.gap, found.status) == (13, 13, 0, "optimal")
    assert found.first is not None and found.best is not None and found.proof is not None
    assert found.first <= found.best <= found.proof <= found.wall
    assert found.seconds_to(0) == found.proof
    assert record_of(json.loads(json.dumps(found.document()))).document() == found.document() | {"notes": []}


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


def an_engine_run(folder: Path, **changes: object) -> int:
    settings = {"rows": "unit-p4-m8-span", "seconds": 5, "workers": 1, "seed": 0, "resume": False}
    args = {"results": folder / "results.json", "write": None} | settings | changes
    return engine.run(Namespace(**args))


def test_a_run_is_resumed_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert an_engine_run(tmp_path) == 0
    assert "Aims met: 1 of 1." in capsys.readouterr().out

    def broken(problem: Problem, limits: Limits, engine: Engine) -> Solution:
        raise Disagreement("value below bound")

    monkeypatch.setattr("benchmarks.reporting.record.solve", broken)
    assert an_engine_run(tmp_path, resume=True) == 0  # nothing left to solve
    assert an_engine_run(tmp_path, rows="unit-p4-m8-*", resume=True) == 1
    out = capsys.readouterr().out
    assert "| unit-p4-m8-makespan | Disagreement: value below bound |" in out
    assert "Not met: unit-p4-m8-makespan." in out
    assert "Proved optimal: unit 1 of 2." in out


def test_every_part_beyond_the_chain_is_a_case_of_its_own() -> None:
    problems = [case.problem() for case in parts.cases()]
    assert len({problem.content_key for problem in problems}) == len(problems)
    line = parts.row(next(case for case in parts.cases() if case.asked == "442"), Limits(deterministic=5, workers=1))
    assert line[1:6] == ["442", "none applies", "442", "442", "0.00"]


def test_a_page_finds_its_picture() -> None:
    assert (
        link_to(Path("docs/images/gap.png"), Path("docs/results/ablation.md"), "gap") == "\n\n![gap](../images/gap.png)"
    )
