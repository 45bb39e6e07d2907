"""Schedules of most free memory: against all orders, the files and their check, sweeps, and what the objective refuses."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest
import yaml

from benchmarks.proofs.free_memory import compare
from commands.main import main
from pipesched.checking.finding import Verdict
from pipesched.checking.free_memory import check_most_left
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, read_schedule
from pipesched.problem.free_memory import giving_back, most_left, reserving
from pipesched.problem.objectives.free_memory import FREE_MEMORY
from pipesched.problem.objectives.span import SPAN
from pipesched.results.free_memory import MostFree
from pipesched.results.solution import Status
from pipesched.sweeps.cells import content_key
from solver.analysis.pareto_sweep import frontier
from solver.limits import Limits
from solver.most_free import leaving_most
from solver.solve import solve, without_search
from tests.support.counted import counted
from tests.support.daily import daily

DOCUMENT = {
    "devices": 3,
    "microbatches": 5,
    "times": {"forward": 2, "backward": 3, "weight": 2},
    "memory": {"capacity": [5, 6, 4], "activation": [1, 2, 1], "unit": "GiB"},
    "objective": "free_memory",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "problem.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT))
    return path


@pytest.mark.parametrize("first", daily(range(0, 36, 12), 3))
def test_against_all_orders(first):
    seen = Counter(one for number in range(first, first + 12) for one in compare(number, counted(0.3))[1])
    assert seen["amount verified"] > 3
    assert seen["less than the most"] <= 1


def test_least_of_the_devices_and_then_the_least_time():
    problem = problem_from(DOCUMENT)
    found = solve(problem, Limits(workers=1, deterministic=20))
    assert (most_left(problem), found.free.value, found.free.bound) == (3, 3, 3)
    assert (found.status, found.value) == (Status.OPTIMAL, 65)
    ample = solve(replace(problem, objective=replace(problem.objective, leaves=None)), seconds=5)
    assert ample.value < 65
    assert without_search(problem).free.value == 3
    # What is reserved is given back, and the objective with it.
    assert giving_back(reserving(problem, 2), problem, 2) == problem


def test_a_period_then(file):
    found = solve(problem_from(DOCUMENT | {"then": "period"}), Limits(workers=1, seconds=5))
    assert found.free.value == 3
    # One micro-batch at a time on the second stage, from its forward until its weight pass: 2 + 2 + 3 + 3 + 2.
    assert (found.status, found.value) == (Status.OPTIMAL, 12)
    # No timeline has a period, and what a file says of free memory without one is compared all the same.
    stated = replace(ScheduleFile.of(found, found.timeline), value_ticks=None)
    more = replace(stated, free=MostFree(Fraction(4), Fraction(4)))
    assert (len(stated.false_claims()), len(more.false_claims())) == (0, 1)


def test_a_smaller_amount_where_limits_of_hosts_allow_no_more():
    saved = {
        "offload": {"out": 1, "in": 1, "on": ["out", "in"], "amount": 2, "host_capacity": 0},
        "activation": 2, "capacity": 8,
    }  # fmt: skip
    document = {
        "devices": 1, "chunks": 2, "placement": "interleaved", "microbatches": 1,
        "streams": ["compute", "out", "in"], "times": {"forward": 1, "backward": 1}, "memory": saved,
        "objective": "free_memory",
    }  # fmt: skip
    problem = problem_from(document)
    found = solve(problem, Limits(workers=1, seconds=600, deterministic=2))
    # The host has no room: both activations stay, though one of them would do if it had.
    assert most_left(problem) * problem.resolution == 6
    assert found.free.value == 4
    assert check_most_left(problem, found.free.value).verdict is Verdict.NOT_VERIFIED


def test_the_bound_holds_for_every_schedule_where_none_was_found_in_time():
    """It was that of the schedules that leave the most, although the answer says of no amount that any leaves it."""
    problem = problem_from(DOCUMENT)

    def search(reserved, limits):
        found = solve(reserved, limits)
        return replace(found, timeline=None, status=Status.UNKNOWN) if reserved != reserving(problem, 0) else found

    found = leaving_most(search, problem, Limits(workers=1, deterministic=2))
    ample = solve(reserving(problem, 0), Limits(workers=1, deterministic=2))
    assert (found.free.value, found.free.bound) == (0, 3)
    assert found.lower_bound_ticks == ample.lower_bound_ticks and found.status is Status.FEASIBLE


def test_nothing_fits(capsys, tmp_path):
    path = tmp_path / "none.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT | {"memory": {"capacity": 1, "activation": 2}}))
    assert main(["solve", str(path)]) == 1
    assert "infeasible" in capsys.readouterr().err


@pytest.mark.usefixtures("pictures_are_empty")
def test_files_and_their_check(file, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["solve", str(file), "--workers", "1", "--time-limit", "300", "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "free memory: 3 GiB on every device at least; no schedule leaves more" in said
    assert "no schedule that leaves as much memory free is better" in said
    assert main(["check", str(out)]) == 0
    said = capsys.readouterr().out
    assert "verified: no schedule leaves more than 3 GiB of memory free" in said
    assert "so it is optimal" in said
    again = read_schedule(out / "schedule.json")
    assert problem_document(again.timeline.problem)["objective"] == "free_memory"
    assert again.timeline.problem.pools == problem_from(DOCUMENT).pools
    answer = json.loads((out / "schedule.json").read_text())
    forged = tmp_path / "forged.json"
    for key, value in (("value", "4"), ("upper_bound", "2")):
        forged.write_text(json.dumps(answer | {"free_memory": answer["free_memory"] | {key: value}}))
        assert main(["check", str(forged)]) in (1, 2)
    # More than this schedule leaves is possible as far as the file says, and so it is not shown to be the best.
    forged.write_text(json.dumps(answer | {"free_memory": {"value": "3", "upper_bound": "4"}}))
    assert main(["check", str(forged)]) == 0
    assert "optimal" not in capsys.readouterr().out
    # Without the amount the bound would be of all schedules, of which shorter ones leave less.
    forged.write_text(json.dumps({key: one for key, one in answer.items() if key != "free_memory"}))
    assert main(["check", str(forged)]) == 1


def test_json_and_compare(file, capsys):
    assert main(["solve", str(file), "--json", "--workers", "1", "--time-limit", "300"]) == 0
    assert json.loads(capsys.readouterr().out)["free_memory"] == {
        "value": 3, "upper_bound": 3, "per_layer": False, "proved": True
    }  # fmt: skip
    assert main(["compare", str(file), "--json", "--workers", "1", "--time-limit", "300"]) == 0
    rows = {one["schedule"]: one for one in json.loads(capsys.readouterr().out)["rows"]}
    # A published schedule fits if it leaves as much.
    assert not rows["gpipe"]["fits"]
    assert rows["zb"]["fits"]


@pytest.mark.usefixtures("pictures_are_empty", "cells_in_turn")
def test_a_sweep_has_the_amount_of_each_cell(file, tmp_path, capsys):
    out = tmp_path / "sweep"
    words = [
        "sweep",
        str(file),
        "--set",
        "memory.capacity=5,8",
        "--workers",
        "1",
        "--time-limit",
        "300",
        "-o",
        str(out),
        "--json",
    ]
    assert main(words) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["free_memory"]["value"] for cell in cells] == [3, 6]
    assert all(cell["lower_bound"] <= 65 <= cell["value"] for cell in cells)
    assert main(["check", str(out)]) == 0
    capsys.readouterr()
    # Read again: nothing is solved.
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["solved"] == 0


@pytest.mark.parametrize("option", [["--explain"], ["--robust", "5%"], ["--then-memory"], ["--for", "torch"]])
def test_questions_of_time_alone(file, option, capsys):
    assert main(["solve", str(file), *option]) == 2
    assert "objective: found free_memory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        {"memory": {"activation": 1}},
        {"parameters": {"step": {"time": 1}}},
        {"microbatches": [4, 8], "batch": {"size": 8}},
        {"objective": "makespan", "then": "span"},
        {"then": "free_memory"},
    ],
)
def test_refused(more):
    with pytest.raises(BadInput, match=r"objective|then|microbatches"):
        problem_from(DOCUMENT | more)


def test_other_entries_refuse_it():
    problem = problem_from(DOCUMENT)
    with pytest.raises(ValueError, match="makespan or span"):
        frontier(problem)
    with pytest.raises(BadInput, match="free_memory"):
        solve(problem, start=solve(problem, seconds=1))


def test_by_option(tmp_path, capsys):
    path = tmp_path / "ample.yaml"
    path.write_text(yaml.safe_dump(DOCUMENT | {"objective": "span", "memory": {"activation": 1}}))
    assert main(["solve", str(path), "--objective", "free_memory"]) == 2
    assert "without memory.capacity" in capsys.readouterr().err
    path.write_text(yaml.safe_dump(DOCUMENT | {"objective": "span"}))
    assert (
        main(["solve", str(path), "--objective", "free_memory", "--json", "--workers", "1", "--time-limit", "300"]) == 0
    )
    assert json.loads(capsys.readouterr().out)["objective"] == "span"


def test_content_differs():
    """What is solved is another problem, with another key in a store."""
    problem = problem_from(DOCUMENT)
    alone = replace(problem, objective=replace(problem.objective, leaves=None))
    assert content_key(problem) != content_key(alone)
    assert FREE_MEMORY.then(SPAN).by_device
