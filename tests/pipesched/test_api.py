"""What users import: one-line texts, values in the file's unit, checked limits, and the page that shows it all."""

from __future__ import annotations

import re
from fractions import Fraction
from math import nan
from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched import (
    BadInput,
    Limits,
    Noise,
    compare,
    frontier,
    pair,
    plan,
    plan_problem_from,
    problem_from,
    read_problem,
    read_schedule,
    robustness,
    save,
    schedule_of,
    simulate,
    solve,
)
from pipesched.problem.problem import Problem
from pipesched.results.solution import Solution

ROOT = Path(__file__).resolve().parents[2]
SURE = Limits(seconds=60, workers=1, deterministic=2)
DOCUMENT = {
    "name": "<b>small</b>",
    "devices": 2,
    "microbatches": 4,
    "time_unit": "ms",
    "times": {"forward": 1.5, "backward": 1.5, "weight": 0.5, "transfer": 0.1},
    "memory": {"capacity": 2, "activation": 1, "unit": "GiB"},
    "objective": "span",
}


@pytest.fixture(scope="module")
def problem() -> Problem:
    return problem_from(DOCUMENT)


@pytest.fixture(scope="module")
def solution(problem: Problem) -> Solution:
    return solve(problem, SURE)


def test_texts_are_of_a_line(problem: Problem, solution: Solution) -> None:
    assert solution.timeline is not None
    for thing in (problem, solution, solution.timeline, solution.timeline.schedule):
        assert len(repr(thing)) < 200
        assert "\n" not in repr(thing)
        assert "small" in repr(thing) or "pipesched" in repr(thing) or "zb" in repr(thing)
    assert (
        repr(solution)
        == f"<Solution '<b>small</b>': optimal, span {solution.value:g} ms, lower bound {solution.value:g} ms>"
    )
    unsolved = Solution(problem, solution.status, 0, None)
    assert repr(unsolved) == "<Solution '<b>small</b>': optimal, no schedule, lower bound 0 ms>"


def test_a_notebook_shows_a_table_and_no_ones_markup(solution: Solution) -> None:
    page = solution._repr_html_()
    assert "<td>zb-h1</td>" in page
    assert "<td>pipesched</td>" in page
    assert "GiB" in page
    assert "<b>" not in page
    assert "&lt;b&gt;small" in page


def test_values_are_in_the_files_unit_and_ticks_are_named_so(problem: Problem, solution: Solution) -> None:
    assert problem.tick != 1
    assert solution.metrics is not None
    assert solution.value_ticks == solution.metrics.span_ticks
    assert solution.value == solution.span == solution.metrics.span == float(solution.metrics.span_ticks * problem.tick)
    assert max(solution.metrics.peak_memory) == 2 and max(solution.metrics.work) == 4 * (1.5 + 1.5 + 0.5)
    assert float(solution.history[-1].value) == solution.value
    assert robustness(solution, Noise(1e-9, 4, 0)).mean == pytest.approx(solution.value)
    points = frontier(problem, 2, SURE).points
    assert points[0].level == 1 and points[-1].value == Fraction("15.7") == min(one.value for one in points)
    assert pair(problem, 0, 0, SURE).value == 1.5 + 1.5 + 0.5
    assert solution.lower_bound == float(solution.lower_bound_ticks * problem.tick)
    assert solution.makespan == float(solution.metrics.makespan_ticks * problem.tick)
    nothing = Solution(problem, solution.status, 3, None)
    assert (nothing.value, nothing.span, nothing.makespan, nothing.gap) == (None, None, None, None)


def test_a_solve_takes_seconds_and_says_what_it_was_given_instead_of_a_problem(problem: Problem) -> None:
    assert solve(problem, seconds=60, limits=SURE).value == solve(problem, SURE).value
    with pytest.raises(BadInput, match="seconds: found -1"):
        solve(problem, seconds=-1)
    with pytest.raises(BadInput, match="found int; allowed: the path of a file"):
        read_problem(3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"solve: found str; allowed: a Problem, as read_problem\(PATH\) returns it"):
        solve("problem.yaml")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="limits: found int"):
        solve(problem, 30)  # type: ignore[arg-type]


def test_orders_that_are_no_lists_of_passes_are_told_what_they_are(problem: Problem) -> None:
    for orders, found in ((problem, "Problem"), ("gpipe", "str"), ([1, 2], "int"), ([["F0.0"]], "str")):
        with pytest.raises(BadInput, match=rf"schedule_of: found {found}; allowed: a list of passes for each device"):
            schedule_of(orders, "gpipe")  # type: ignore[arg-type]
    assert schedule_of([[], []]).orders == ((), ())


def test_a_model_of_layers_is_planned_in_code() -> None:
    layers = [{"name": "layer", "count": 6, "forward": 1, "backward": 2}]
    found = plan(plan_problem_from({"devices": 2, "microbatches": 4, "layers": layers, "placement": "linear"}), SURE)
    assert found.value is not None
    assert found.lower_bound <= found.value


def test_compare_lists_every_schedule_best_first(problem: Problem, solution: Solution) -> None:
    rows = compare(problem, SURE)
    assert {row.name for row in rows} == {*HEURISTICS.names(), "pipesched"}
    assert rows[-1].span == solution.value
    fitting = [row.span for row in rows[:-1] if row.fits and row.span is not None]
    assert fitting == sorted(fitting)
    assert [row.name for row in compare(problem, SURE, ["gpipe", "1f1b"])] == ["1f1b", "gpipe", "pipesched"]
    with pytest.raises(BadInput, match="1f2b"):
        compare(problem, SURE, ["1f2b"])


def test_what_is_saved_is_read_back(problem: Problem, solution: Solution, tmp_path: Path) -> None:
    assert solution.timeline is not None
    file = read_schedule(save(solution, tmp_path / "one.json"))
    assert file.timeline == solution.timeline
    assert (file.value_ticks, file.lower_bound_ticks) == (solution.value_ticks, solution.lower_bound_ticks)
    alone = simulate(problem, HEURISTICS["gpipe"].order(problem))
    assert read_schedule(save(alone, tmp_path / "two.json")).timeline == alone
    with pytest.raises(BadInput, match="without a schedule"):
        save(Solution(problem, solution.status, 0, None), tmp_path / "three.json")
    assert not (tmp_path / "three.json").exists()


def test_a_problem_in_code_is_checked_as_a_file_is(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("devices: 2\nmicrobatches: 0\ntimes: {forward: -1, backward: 1}\nmemmory: {}\n")
    with pytest.raises(BadInput) as of_file:
        read_problem(path)
    wrong = {"devices": 2, "microbatches": 0, "times": {"forward": -1, "backward": 1}, "memmory": {}}
    with pytest.raises(BadInput) as of_code:
        problem_from(wrong)
    assert [line.replace(str(path), "problem") for line in of_file.value.mistakes] == list(of_code.value.mistakes)
    assert len(of_code.value.mistakes) == 3


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({"seconds": -1}, ["seconds"]),
        ({"seconds": nan}, ["seconds"]),
        ({"seconds": "60"}, ["seconds"]),
        ({"workers": -1, "seed": 2**31}, ["workers", "seed"]),
        ({"workers": 1.5}, ["workers"]),
        ({"gap": 2}, ["gap"]),
        ({"gap": -0.1, "deterministic": -1}, ["gap", "deterministic"]),
        ({"target": 0.5}, ["target"]),
    ],
)
def test_limits_say_which_field_is_wrong(fields: dict[str, object], keys: list[str]) -> None:
    with pytest.raises(BadInput) as refused:
        Limits(**fields)  # type: ignore[arg-type]
    assert [line.split(":")[0] for line in refused.value.mistakes] == keys
    assert all("allowed" in line for line in refused.value.mistakes)


def test_the_page_for_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    names: dict[str, object] = {}
    for block in blocks:
        exec(re.sub(r"seconds=(\d+)", r"seconds=\1, workers=1, deterministic=0.2", block), names)
    assert (tmp_path / "schedule.json").exists()
