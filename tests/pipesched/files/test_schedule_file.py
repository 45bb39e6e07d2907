"""The schedule file: what is written is read back whole, old files stay readable, wrong ones get their message."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.problem.passes import F, Task, parse_pass
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import TaskSpec
from pipesched.results.certificate import Certificate
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import costs_of, with_tasks
from tests.support.makers import problem, random_order, schedule


def written(file: ScheduleFile, folder: Path) -> ScheduleFile:
    path = folder / "schedule.json"
    path.write_text(to_text(file), encoding="utf-8")
    return read_schedule(path)


def check(one: Problem, folder: Path, seed: int = 0) -> None:
    file = ScheduleFile(simulate(one, random_order(one, Random(seed), pairs=0.7)))
    again = written(file, folder)
    assert again.timeline.problem == one
    assert again.timeline.schedule == file.timeline.schedule
    assert again.timeline.starts == file.timeline.starts
    assert again == file


def test_the_tick_is_exact(tmp_path: Path) -> None:
    one = problem(2, 2, times={"forward": Decimal("0.001"), "backward": Decimal("0.0025")})
    assert json.loads(to_text(ScheduleFile(simulate(one, random_order(one, Random(0))))))["tick"] == "1/2000"
    check(one, tmp_path)


def test_numbers_are_not_rounded_again(tmp_path: Path) -> None:
    """Stages of a slow worker, once written, add up to more steps than a problem file is read with."""
    document = {
        "devices": 2,
        "microbatches": 1,
        "pipelines": {"count": 2, "slow": {"1.0": 2}},
        "times": {"forward": Decimal("3.945269012816244"), "backward": Decimal("4.963088457692966")},
    }
    one = problem_from(document)
    again = written(ScheduleFile(simulate(one, random_order(one, Random(0)))), tmp_path).timeline
    assert (again.problem.tick, again.problem.notes) == (one.tick, ()) and not validate(again)


def test_bound_and_certificate(tmp_path: Path) -> None:
    one = problem(1, 1)
    timeline = simulate(one, schedule("F0.0 BW0.0"))
    file = ScheduleFile(timeline, 3, Certificate("work", 3, "device 0 works 3", device=0))
    assert written(file, tmp_path) == file
    whole = ScheduleFile(timeline, 2, Certificate("path", 2, "the longest path"))
    assert written(whole, tmp_path) == whole


def test_what_the_file_says() -> None:
    one = problem(2, 2, placement=[0, 1, 1], times={"forward": 1, "backward": 2, "overlapped": 2}, objective="span")
    orders = schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 F2.0 BW2.0 F1.1&BW1.0 F2.1 BW2.1 BW1.1", name="mine")
    said = json.loads(to_text(ScheduleFile(simulate(one, orders))))
    assert said["orders"][1] == ["F1.0", "F2.0", "BW2.0", "F1.1&BW1.0", "F2.1", "BW2.1", "BW1.1"]
    assert said["starts"]["F1.1"] == said["starts"]["BW1.0"] == 5
    assert (said["schedule"], said["objective"], said["value"], said["lower_bound"]) == ("mine", "span", 14, None)
    assert said["problem"]["placement"] == [0, 1, 1]
    assert said["problem"]["times"] == {"forward": 1, "backward": 2, "transfer": 0, "overlapped": 2}


def test_a_period_is_stated_or_unknown() -> None:
    one = problem(1, 1, objective="period")
    assert one.objective == Objective.PERIOD
    unknown = ScheduleFile(simulate(one, schedule("F0.0 BW0.0")))
    assert json.loads(to_text(unknown))["value"] is None
    assert unknown.metrics.bubbles.keys() == {"makespan", "span"}
    stated = replace(unknown, value_ticks=4)
    assert json.loads(to_text(stated))["value"] == stated.metrics.period_ticks == 4


def test_what_no_problem_file_can_say() -> None:
    one = problem(2, 1)
    with pytest.raises(ValueError, match="several tasks"):
        problem_document(with_tasks(one, {(F, 0): (TaskSpec("ep", 1),)}))
    with pytest.raises(ValueError, match="every device or of none"):
        problem_document(one.with_room((1, None)))


# Written by pipesched 0.1.0; it stays as it is, so that files of users stay readable.
VERSION_1 = """{
 "format": "pipesched-schedule",
 "format_version": 1,
 "tool": "pipesched 0.1.0",
 "schedule": "by-hand",
 "problem": {
  "name": "old",
  "devices": 2,
  "microbatches": 2,
  "placement": "linear",
  "time_unit": "ms",
  "times": {"forward": 0.5, "backward": 1, "weight": 0.5, "fused": 1.25, "transfer": 0.25, "overlapped": 1.5},
  "memory": {"unit": "GiB", "activation": [1, 2], "freed_by_backward": [0.5, 0], "capacity": [8, 7.5]},
  "objective": "span"
 },
 "tick": "1/4",
 "objective": "span",
 "value": 23,
 "lower_bound": 20,
 "certificate": {"kind": "work", "value": 20, "text": "device 0 has work for 20", "device": 0},
 "orders": [
  ["F0.0", "F0.1", "B0.0", "W0.0", "BW0.1"],
  ["F1.0", "F1.1&BW1.0", "BW1.1"]
 ],
 "starts": {"F0.0": 0, "F0.1": 2, "B0.0": 12, "W0.0": 16, "BW0.1": 18, "F1.0": 3, "F1.1": 5, "BW1.0": 5, "BW1.1": 11}
}
"""


def test_a_file_of_version_1_is_read(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(VERSION_1)
    file = read_schedule(path)
    one = file.timeline.problem
    assert (one.name, one.devices, one.microbatches, one.tick) == ("old", 2, 2, Fraction(1, 4))
    assert (costs_of(one).fused, costs_of(one).overlapped, one.room) == ((5, 5), (6, 6), (16, 15))
    assert file.timeline.schedule == schedule("F0.0 F0.1 B0.0 W0.0 BW0.1", "F1.0 F1.1&BW1.0 BW1.1")
    assert file.timeline.starts == simulate(one, file.timeline.schedule).starts
    assert validate(file.timeline) == []
    assert (file.lower_bound_ticks, file.certificate) == (20, Certificate("work", 20, "device 0 has work for 20", 0))


def changed(folder: Path, **keys: Any) -> Path:
    path = folder / "changed.json"
    path.write_text(json.dumps(json.loads(VERSION_1) | keys))
    return path


def test_ticks_are_the_file_s_own(tmp_path: Path) -> None:
    starts = {p: 2 * start for p, start in json.loads(VERSION_1)["starts"].items()}
    file = read_schedule(changed(tmp_path, tick="0.125", starts=starts, value=46, lower_bound=40, certificate=None))
    assert file.timeline.starts[Task(parse_pass("BW0.1"))] == 18
    assert (file.lower_bound_ticks, file.certificate) == (20, None)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"format": "something"}, "not a schedule file"),
        ({"format_version": 2}, "format_version: found 2"),
        ({"format_version": "1"}, "format_version: found '1'"),
        ({"format_version": None}, "format_version: found nothing"),
        ({"problem": None}, "problem: found nothing"),
        ({"tick": None}, "tick: found nothing"),
        ({"tick": "soon"}, "tick: found 'soon'"),
        ({"tick": "1/0"}, "tick: found '1/0'"),
        ({"tick": 0}, "tick: found 0"),
        ({"tick": -1}, "tick: found -1"),
        ({"tick": "1/7"}, "starts.F0.1: found 2"),
        ({"orders": None}, "orders: found no list of lists"),
        ({"orders": ["F0.0"]}, "orders: found no list of lists"),
        ({"orders": [["X0.0"]]}, "orders: found 'X0.0'"),
        ({"orders": [["BW0.0&F0.1"]]}, "orders: found 'BW0.0&F0.1'"),
        ({"orders": [["F0.0&B0.1&W0.1"]]}, "orders: found 'F0.0&B0.1&W0.1'"),
        ({"starts": None}, "starts: found none"),
        ({"starts": {"F0": 1}}, "starts: found 'F0'"),
        ({"starts": {"F0.0": 1.5}}, "starts.F0.0: found 1.5"),
        ({"starts": {"F0.0": True}}, "starts.F0.0: found true"),
        ({"lower_bound": "x"}, "lower_bound: found 'x'"),
        ({"certificate": {"kind": "work"}}, "certificate.value: found nothing"),
    ],
)  # fmt: skip
def test_each_mistake_has_its_line(keys: dict[str, Any], line: str, tmp_path: Path) -> None:
    path = changed(tmp_path, **keys)
    with pytest.raises(BadInput) as caught:
        read_schedule(path)
    (said,) = caught.value.mistakes
    assert re.match(rf"{re.escape(f'{path}: {line}')}([; ]|$)", said)


def test_mistakes_of_the_problem_inside(tmp_path: Path) -> None:
    path = changed(tmp_path, problem={"devices": 2, "microbatches": 0, "times": {"forward": 1}})
    with pytest.raises(BadInput) as caught:
        read_schedule(path)
    assert [line.split(";")[0] for line in caught.value.mistakes] == [
        f"{path}: problem: times.backward: missing",
        f"{path}: problem: microbatches: found 0",
    ]


@pytest.mark.parametrize("text", ["[]", "3", '"pipesched-schedule"', "{}"])
def test_something_else(text: str, tmp_path: Path) -> None:
    path = tmp_path / "else.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="not a schedule file"):
        read_schedule(path)
    with pytest.raises(BadInput, match="no such file"):
        read_schedule(tmp_path / "nowhere.json")


def test_broken_rules_are_read_and_left_to_the_judge(tmp_path: Path) -> None:
    file = read_schedule(changed(tmp_path, orders=[["F0.0", "F9.9"], []], starts={"F0.0": -3}))
    assert {violation.rule for violation in validate(file.timeline)} == {"complete"}
