"""The benchmarks: their rows, what they record and print, and that the rival's program has the true optima."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import engine, growth
from benchmarks.cases.profiles import PROFILES, unit, v_shape
from benchmarks.cases.rows import GROUPS, Aim, Row, rows, select
from benchmarks.reporting.engine_table import in_percent, markdown, percent, reached, refuted
from benchmarks.reporting.gap_plot import draw
from benchmarks.reporting.page import END, begin, put, relative_to_page
from benchmarks.reporting.record import Record, gap_over_time, record, record_of, settings_of
from benchmarks.reporting.store import Store
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput, Disagreement
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
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


@pytest.mark.parametrize(("memory", "name"), (("full", "zbv"), ("half", "v-half"), ("third", "v-min")))
def test_a_v_row_has_the_room_of_its_schedule(memory: str, name: str) -> None:
    problem = v_shape(48, memory)
    peaks = measure(simulate(problem, HEURISTICS[name].order(problem))).peak_memory
    assert (max(peaks),) * 16 == problem.room


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


def test_a_row_says_whether_it_reached_its_aim() -> None:
    row = Row("a", "2p", unit(2, 2, "span"), Aim(bubble=0.1, gap=0.01, seconds=3))
    good = a_record((1.0, None, 90.0), (2.0, 101.0, 100.0), (9.0, 100.0, 100.0))
    assert reached(row, good)
    assert not reached(row, replace(good, bubble=0.11))
    assert not reached(row, a_record((2.0, 102.0, 100.0), (4.0, 101.0, 100.0)))
    assert not reached(row, replace(good, error="Disagreement: x"))
    assert reached(replace(row, aim=Aim()), good) is None


def test_an_aim_below_the_proved_bound_cannot_be_met() -> None:
    row = Row("a", "2p", unit(2, 2, "span"), Aim(bubble=0.1))
    found = replace(a_record((1.0, 100.0, 90.0)), bubble=0.2)  # 80 ticks of work, and no schedule below 90
    assert refuted(row, found) == pytest.approx(1 - 80 / 90)
    assert refuted(replace(row, aim=Aim(bubble=0.12)), found) is None
    assert "Cannot be met: a." in markdown((row,), {"a": found}, "here")


def test_an_aim_is_met_in_all_its_parts() -> None:
    row = Row("a", "2p", unit(2, 2, "span"), Aim(bubble=0.1, gap=0.2))
    found = replace(a_record((1.0, 100.0, 81.0)), bubble=0.11)
    wide = replace(a_record((1.0, 100.0, 70.0)), bubble=0.1)
    for missed in (found, wide):
        assert "Not met: a." in markdown((row,), {"a": missed}, "here")
    assert "Aims met: 1 of 1." in markdown((row,), {"a": replace(found, bubble=0.1)}, "here")


def test_a_group_that_is_proved_is_a_line_unless_it_is_compared_with_what_was_published() -> None:
    row = Row("a", "2p", unit(2, 2, "span"), Aim())
    proved = replace(a_record((1.0, 100.0, 90.0), (2.0, 100.0, 100.0)), status="optimal", proof=2.0)
    assert "All 1 proved optimal, each in 2.0 s or less." in markdown((row,), {"a": proved}, "here")
    for other, found in ((replace(row, published=".1"), proved), (row, replace(proved, status="feasible"))):
        text = markdown((other,), {"a": found}, "here")
        assert "All 1 proved" not in text and "| a |" in text


def test_the_gap_over_time_begins_with_the_first_schedule() -> None:
    found = a_record((0.1, None, 50.0), (1.0, 100.0, 50.0), (2.0, 100.0, 75.0), (3.0, 100.0, 75.0), (4.0, 75.0, 75.0))
    assert gap_over_time(found) == [(1.0, 0.5), (2.0, 0.25), (4.0, 0.0)]
    assert found.seconds_to(0.3) == 2.0
    assert a_record((1.0, 100.0, 50.0)).seconds_to(0.3) is None


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
    settings = {"rows": "unit-p4-m8-span", "seconds": 5, "workers": 1, "seed": 0, "plain": False, "resume": False}
    args = {"results": folder / "results.json", "write": None} | settings | changes
    return engine.run(Namespace(**args))


def test_a_run_is_resumed_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert an_engine_run(tmp_path) == 0
    assert "Aims met: 1 of 1." in capsys.readouterr().out

    def broken(problem: Problem, limits: Limits) -> Solution:
        raise Disagreement("value below bound")

    monkeypatch.setattr(engine, "solve", broken)
    assert an_engine_run(tmp_path, resume=True) == 0  # nothing left to solve
    assert an_engine_run(tmp_path, rows="unit-p4-m8-*", resume=True) == 1
    out = capsys.readouterr().out
    assert "| unit-p4-m8-makespan | Disagreement: value below bound |" in out
    assert "Not met: unit-p4-m8-makespan." in out
    assert "Proved optimal: unit 1 of 2." in out


def test_growth_is_compared_at_the_same_gap() -> None:
    chosen = select("growth-1p-*")
    slow = a_record((1.0, 100.0, 80.0), (4.0, 100.0, 95.0))
    fast = a_record((1.0, 100.0, 80.0), (2.0, 100.0, 98.0), (3.0, 100.0, 100.0))
    text = markdown(chosen, {"growth-1p-m64": fast, "growth-1p-m4096": slow}, "here")
    assert "| 1p | 5.00 | 64: 2.0, 4096: 4.0 | 2.00 |" in text


def test_growth_tells_seconds_or_the_gap_left(tmp_path: Path) -> None:
    family = growth.FAMILIES[1]
    assert family.name == "linear, .6p" and family.problem(8, 16).room[0] == family.problem(8, 64).room[0]
    problems = [family.problem(8, 8 * length) for length in (2, 8)]
    fast, slow = a_record((1.0, 100.0, 80.0), (2.0, 100.0, 99.5)), a_record((1.0, 100.0, 80.0), (9.0, 100.0, 95.0))
    records = {problems[0].name: fast, problems[1].name: slow}
    text = growth.markdown((8,), (2, 8), records, "here")
    assert "| linear, .6p | 8 | 2.0 | 5.00 % | 1,536 |" in text
    assert growth.curves(family, (8,), (2, 8), records) == {8: [(384, 2.0, True), (1536, 9.0, False)]}
    page, results = tmp_path / "page.md", tmp_path / "growth.json"
    page.write_text(f"{begin(growth.COMMAND)}\n{END}\n")
    command = ["--devices", "2", "--lengths", "2", "--seconds", "20", "--workers", "1", "--results", str(results)]
    picture = ["--write", str(page), "--picture", str(tmp_path / "growth.svg")]
    assert growth.main([*command, *picture]) == growth.main([*command, *picture, "--resume"]) == 0
    assert "4 of 4 points came to a gap of 1 %" in page.read_text()
    assert "not reached" in (tmp_path / "growth.svg").read_text()


def test_a_picture_takes_rows_without_a_schedule(tmp_path: Path) -> None:
    none = replace(a_record((1.0, 100.0, 80.0)), history=((1.0, None, 80.0),))
    draw({"row": {"a": none, "b": a_record((1.0, 100.0, 80.0), (2.0, 80.0, 80.0))}}, tmp_path / "gap.svg", 1)
    assert "</svg>" in (tmp_path / "gap.svg").read_text()


def test_a_page_finds_its_picture() -> None:
    assert relative_to_page(Path("docs/images/gap.png"), Path("docs/results/ablation.md")) == "../images/gap.png"
