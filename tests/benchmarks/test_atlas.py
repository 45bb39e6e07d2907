"""The atlas: fair cells, points settled over all placements, rows that go on where they stopped, and its page."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.atlas import page, survey
from benchmarks.atlas.__main__ import ROWS, main
from benchmarks.atlas.grid import LENGTHS, MEMORIES, PLACEMENTS, RATIOS, TRANSFERS, Family, Point, families, points
from benchmarks.atlas.maps import cell_text
from benchmarks.atlas.row import IMPROVED, Placed, PublishedValue, Row, read_rows, write_rows
from benchmarks.atlas.sentences import sentences
from benchmarks.atlas.settle import Effort
from commands.main import main as pipesched
from pipesched import solve
from pipesched.problem.problem import Problem
from tests.support.counted import counted

SMALL = Family(4, 1, "2:2:1", Fraction("1/20"))
# Processor seconds that last also where kernels are compiled first.
EFFORT = Effort(0.2, 600)


def row(
    value: int | None, bound: int, published: dict[str, PublishedValue], memory: str = "1", **others: Placed
) -> Row:
    placed = {"linear": Placed(value, bound, "load", "verified", published)} | others
    return Row(Point(SMALL, Fraction(memory)), placed, 0.2, 1.0, "test")


def test_a_device_has_the_same_work_and_memory_on_every_placement() -> None:
    family = Family(4, 2, "2:2:1", Fraction("1/5"))
    for point, cells in points(family, family.sweep):
        assert {*cells} == {*PLACEMENTS}
        for cell in cells.values():
            problem = cell.problem
            assert isinstance(problem, Problem)
            assert (problem.devices, problem.microbatches) == (4, 8)
            for stages in problem.placement.stages_of:
                work = [problem.stages[s] for s in stages]
                assert sum(stage.forward for stage in work) * problem.tick == 20
                assert sum(stage.weight or 0 for stage in work) * problem.tick == 10
            whole = sum(problem.network.memory_in_flight) * problem.resolution / 4
            assert problem.room[0] is not None
            assert problem.room[0] * problem.resolution == point.memory * 4 * whole
            assert {stage.transfer * problem.tick for stage in problem.stages[:-1]} == {4}


def test_a_backward_that_does_not_split_has_no_weight_pass() -> None:
    family = Family(4, 1, "1:2", Fraction(0))
    problems = [cell.problem for cell in family.sweep.cells]
    assert not any(isinstance(one, Problem) and one.splittable for one in problems)


def test_the_families_are_all_combinations_with_the_fewest_passes_first() -> None:
    found = families([8, 4])
    assert len(found) == 2 * len(LENGTHS) * len(RATIOS) * len(TRANSFERS)
    assert [one.passes for one in found] == sorted(one.passes for one in found)


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, list[str]]:
    folder, lines = tmp_path_factory.mktemp("atlas"), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(survey, "families", lambda _: [SMALL])

        def stop_after_two(line: str) -> None:
            lines.append(line)
            if len(lines) == 2:
                raise KeyboardInterrupt

        files = folder / "rows.jsonl", folder / "store.sqlite"
        with pytest.raises(KeyboardInterrupt):
            survey.survey([4], MEMORIES, EFFORT, False, *files, stop_after_two)
        assert len(read_rows(files[0])) == 2
        survey.survey([4], MEMORIES, EFFORT, False, *files, lines.append)
        survey.survey([4], MEMORIES, EFFORT, False, *files, lines.append)
    return *files, lines


def test_a_run_goes_on_where_it_stopped_and_does_nothing_twice(surveyed: tuple[Path, Path, list[str]]) -> None:
    rows, _, lines = surveyed
    assert len(lines) == len(read_rows(rows)) == len(MEMORIES)


def test_open_rows_are_searched_on_with_a_store_that_has_none_of_them(
    surveyed: tuple[Path, Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(survey, "families", lambda _: [SMALL])
    rows = read_rows(surveyed[0])
    path, lines = tmp_path / "rows.jsonl", list[str]()
    write_rows(path, (replace(one, placed=_without_bounds(one), units=0.1) for one in rows.values()))

    def stop_after_one(line: str) -> None:
        lines.append(line)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        survey.survey([4], MEMORIES, EFFORT, True, path, tmp_path / "another.sqlite", stop_after_one)
    found = read_rows(path)
    proved = [point for point, one in found.items() if one.proved]
    assert len(found) == len(rows) and proved
    assert all(found[point].value == rows[point].value for point in proved)


def test_named_subsolvers_search_alone_in_open_rows_whatever_work_these_had(
    surveyed: tuple[Path, Path, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = Effort(0.2, 600, ("no-wait schedules",))
    assert [one.name for one in only.engine.members] == ["no-wait schedules"]
    assert only.limits.deterministic is None
    monkeypatch.setattr(survey, "families", lambda _: [SMALL])
    (point, known), *_ = read_rows(surveyed[0]).items()
    path, lines = tmp_path / "rows.jsonl", list[str]()
    write_rows(path, [replace(known, placed=_without_bounds(known), units=10)])
    survey.survey([4], [point.memory], only, True, path, tmp_path / "another.sqlite", lines.append)
    (found,) = read_rows(path).values()
    assert len(lines) == 1
    assert found.units == 10 and found.made_by.endswith("no-wait schedules alone, 600 s")
    assert (found.value or 0) <= (known.value or 0)


def test_a_run_with_another_store_loses_nothing_that_was_known() -> None:
    first, second = Placed(20, 12, "load", "verified", {}), Placed(18, 10, "round trip", "verified", {})
    assert second.with_known(first) == Placed(18, 12, "load", "verified", {})
    assert first.with_known(second) == Placed(18, 12, "load", "verified", {})
    nothing = Placed(None, None, "", "", {})
    assert nothing.with_known(first) == first == first.with_known(nothing)


def _without_bounds(row: Row) -> dict[str, Placed]:
    return {name: replace(one, lower_bound=None) for name, one in row.placed.items()}


def test_the_best_of_all_placements_is_that_of_full_searches(surveyed: tuple[Path, Path, list[str]]) -> None:
    rows = read_rows(surveyed[0])
    for point, cells in points(SMALL, SMALL.sweep):
        found = rows[point]
        assert found.proved
        full = {name: solve(cell.problem, counted(2)) for name, cell in cells.items()}
        assert found.value == min(one.value for one in full.values() if one.value is not None)
        assert all(found.placed[name].value == full[name].value for name in found.placements)
        assert all((found.placed[name].lower_bound or 0) <= (full[name].value or 0) for name in cells)


def test_check_verifies_the_store(surveyed: tuple[Path, Path, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert pipesched(["check", str(surveyed[1])]) == 0
    assert ", 0 wrong; bounds: " in capsys.readouterr().out


def test_published_schedules_of_a_row_are_without_our_improvements(surveyed: tuple[Path, Path, list[str]]) -> None:
    for found in read_rows(surveyed[0]).values():
        names = {name for one in found.placed.values() for name in one.published}
        assert {"1f1b", "zb", "interleaved-1f1b"} <= names
        assert not {one.schedule for one in found.fitting} & {*IMPROVED}
        assert found.excess is not None
        assert found.excess >= 0


def test_rows_are_read_as_they_were_written(surveyed: tuple[Path, Path, list[str]], tmp_path: Path) -> None:
    rows = read_rows(surveyed[0])
    write_rows(tmp_path / "again.jsonl", rows.values())
    assert (tmp_path / "again.jsonl").read_bytes() == surveyed[0].read_bytes()
    (tmp_path / "again.jsonl").write_text("{}\n")
    assert main(["--draw", "--rows", str(tmp_path / "again.jsonl")]) == 2


def test_a_row_takes_the_least_bound_and_the_best_value_of_all_placements() -> None:
    other = Placed(
        90, 85, "load", "trusted", {"zbv": PublishedValue(95, 4, True), "v-min": PublishedValue(80, 9, False)}
    )
    found = row(
        100, 95, {"zb-h1": PublishedValue(100, 4, True), "gpipe": PublishedValue(95, 3, True)}, **{"v-shape": other}
    )
    assert (found.value, found.lower_bound, found.proved, found.trusted) == (90, 85, False, True)
    assert found.placements == ["v-shape"]
    assert [one.schedule for one in found.fitting] == ["gpipe", "zbv", "zb-h1"]
    assert cell_text(found) == "gpipe\n≥ +5.6 %"
    assert cell_text(row(100, 100, {"zb-h1": PublishedValue(100, 4, True)})) == "zb-h1\noptimal"
    assert cell_text(row(100, 100, {"zb-h1": PublishedValue(90, 9, False)})) == "none fits"
    assert row(None, 95, {}).placements == []


def test_ten_sentences() -> None:
    rows = [row(100, 100, {"zb": PublishedValue(110, 1, True)}, str(memory)) for memory in MEMORIES]
    found = sentences(rows)
    assert len(found) == 10
    assert found[0] == "In 5 of 5 cells (100 %) the optimum over the three placements is proved."
    assert "is best as zb (1): proved optimal in 0, 10.0 % longer than the best order in the mean" in found[3]


def test_the_page_is_that_of_the_rows() -> None:
    rows = read_rows(ROWS)
    shown = sorted({point.family.devices for point in rows})
    assert page.text([*rows.values()], shown) in (page.DOCS / "atlas.md").read_text(encoding="utf-8")
    for p in shown:
        assert (page.DOCS / "images" / f"atlas-p{p}.png").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--devices", "5"],
        ["--devices", "four"],
        ["--memory", "1/3"],
        ["--units", "0"],
        ["--only", "no-weight schedules"],
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert "allowed" in capsys.readouterr().err
