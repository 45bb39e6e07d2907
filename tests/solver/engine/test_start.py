"""A solve goes on from a schedule, a timeline or a solution: never worse, also without time, and refused if it does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.problem_file import read_problem
from pipesched.files.schedule_file import read_schedule, save
from pipesched.problem.problem import Objective, Problem
from pipesched.results.solution import Progress, Solution
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import sequential
from solver.engine.engine import ENGINE
from solver.engine.search import Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.columns import costs_of
from tests.support.counted import counted
from tests.support.makers import gpt_1_5b, problem, schedule

ROOT = Path(__file__).parents[3]
NO_TIME = Limits(seconds=0, workers=1)
# Neither published schedules nor any phase: what comes out is what was started from.
NOTHING = replace(ENGINE, construction=(), subsolvers=(), finish=Search.solution)
SEARCH = replace(ENGINE, finish=Search.solution)
TIGHT = gpt_1_5b(4, 8, 3)


@pytest.fixture(scope="module")
def found() -> Solution:
    return solve(TIGHT, counted(0.02), engine=SEARCH)


def test_a_previous_solution_keeps_its_value_without_time(found: Solution) -> None:
    again = solve(TIGHT, NO_TIME, start=found, engine=NOTHING)
    assert (again.value_ticks, again.problem.tick) == (found.value_ticks, found.problem.tick)
    assert solve(TIGHT, NO_TIME, start=found).value_ticks == found.value_ticks
    assert again.timeline is not None
    assert not validate(again.timeline)


def test_a_solve_from_a_solution_a_timeline_or_an_order_is_never_worse(found: Solution) -> None:
    assert found.timeline is not None
    assert found.value is not None
    for start in (found, found.timeline, found.timeline.schedule):
        heard: list[Progress] = []
        again = solve(TIGHT, counted(0.01), heard.append, start=start, engine=SEARCH)
        assert again.value is not None
        assert again.value <= found.value
        assert heard[0].phase == "start"
        assert heard[0].timeline is not None


def test_a_bad_start_does_not_hold_the_search_back() -> None:
    one = problem(2, 3)
    assert solve(one, Limits(workers=1), start=sequential(one)).value == solve(one, Limits(workers=1)).value


def test_a_start_of_other_durations_gets_the_times_of_this_problem(found: Solution) -> None:
    slower = gpt_1_5b(4, 8, 4)
    slower = slower.with_stages(forward=tuple(2 * ticks for ticks in costs_of(slower).forward))
    again = solve(slower, NO_TIME, start=found, engine=NOTHING)
    assert again.timeline is not None
    assert not validate(again.timeline)
    assert again.value is not None
    assert found.value is not None
    assert again.value > found.value


@pytest.mark.parametrize(
    ("one", "said"),
    (
        (problem(2, 3), "complete"),
        (problem(3, 2), "3"),
        (problem(2, 2, memory={"capacity": 1}), "memory"),
        (problem(2, 2, objective="period"), "period"),
    ),
)
def test_a_start_that_does_not_fit_is_refused(one: Problem, said: str) -> None:
    start = schedule("F0.0 F0.1 B0.0 W0.0 B0.1 W0.1", "F1.0 B1.0 W1.0 F1.1 B1.1 W1.1")
    with pytest.raises(BadInput, match=f"^start: .*{said}"):
        solve(one, NO_TIME, start=start)


def test_a_solution_without_a_schedule_is_no_start() -> None:
    nothing = solve(problem(2, 3, placement="v-shape", memory={"capacity": [1, 2]}), NO_TIME)
    with pytest.raises(BadInput, match="without a schedule"):
        solve(problem(2, 2), NO_TIME, start=nothing)


def test_progress_carries_the_best_timeline_and_the_history_does_not() -> None:
    heard: list[Progress] = []
    solution = solve(TIGHT, counted(0.02), heard.append, engine=SEARCH)
    assert any(moment.timeline is not None for moment in heard)
    for moment in heard:
        if moment.value is None or moment.timeline is None:
            assert moment.value is moment.timeline is None
            continue
        assert value_of(TIGHT, moment.timeline) * TIGHT.tick == moment.value
        assert not validate(moment.timeline)
    assert all(moment.timeline is None for moment in solution.history)


@pytest.mark.usefixtures("pictures_are_empty")
def test_the_command_goes_on_from_a_schedule_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = ROOT / "examples" / "start.yaml"
    before = solve(read_problem(example), Limits(workers=1))
    path = save(before, tmp_path / "schedule.json")
    out = tmp_path / "out"
    assert main(["solve", str(example), "--start", str(path), "--time-limit", "0.001", "-o", str(out)]) == 0
    assert read_schedule(out / "schedule.json").value == before.value
    period = ["solve", str(example), "--start", str(path), "--objective", Objective.PERIOD.name]
    assert main(period) == 2
    assert "--start" in capsys.readouterr().err
