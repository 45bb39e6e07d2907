"""What the judge says of each rule that is broken alone; test_every_kind.py has timelines spoilt at random."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipesched.problem.blocks import Blocks
from pipesched.problem.passes import F, Slot, Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from tests.support.columns import with_tasks
from tests.support.in_turn import in_turn
from tests.support.makers import problem, random_order, random_problem, shuffled
from tests.support.task_brute_force import arcs_of, game_of


def timed(one: Problem, *rows: str) -> Timeline:
    """One row a device: `F0.0@0 F0.1@2&BW0.0@2`."""
    starts: dict[Task, int] = {}
    orders: list[list[Slot]] = []
    for row in rows:
        orders.append([])
        for slot in row.split():
            timed_passes = [(parse_pass(p), int(start)) for p, start in (word.split("@") for word in slot.split("&"))]
            starts |= {Task(p): start for p, start in timed_passes}
            orders[-1].append(tuple(p for p, _ in timed_passes))  # type: ignore[arg-type]
    return Timeline(one, Schedule(tuple(map(tuple, orders))), starts)


# Two devices, two micro-batches; a block of four ticks on device 1; every device can hold two activations.
TIMES = {"forward": 1, "backward": 1, "weight": 2, "fused": 3, "transfer": 1, "overlapped": 4}
RIGHT = ("F0.0@0 F0.1@1 B0.0@8 W0.0@9 BW0.1@11", "F1.0@2 F1.1@3&BW1.0@3 BW1.1@7")


def two_devices() -> Problem:
    return problem(2, 2, times=TIMES, memory={"capacity": [2, 2]})


def found(timeline: Timeline) -> list[tuple[str, str]]:
    """The rules broken, each with its passes."""
    return [(violation.rule, " ".join(map(str, violation.passes))) for violation in validate(timeline)]


def spoilt(*changes: tuple[str, str]) -> tuple[str, ...]:
    rows = "\n".join(RIGHT)
    for old, new in changes:
        assert rows.count(old) == 1
        rows = rows.replace(old, new)
    return tuple(rows.split("\n"))


def test_the_right_timeline_is_right() -> None:
    assert validate(timed(two_devices(), *RIGHT)) == []


@in_turn(
    ("rows", "expected"),
    [
        pytest.param(spoilt((" W0.0@9", "")), [("complete", "B0.0 F0.0")], id="no W"),
        pytest.param(spoilt((" BW1.1@7", "")), [("complete", "F1.1")], id="no backward"),
        pytest.param(spoilt(("F0.0@0 ", "")), [("complete", "B0.0 W0.0")], id="no F"),
        pytest.param(spoilt((" BW0.1@11", " BW0.1@11 BW0.1@11")), [("complete", "BW0.1")], id="twice"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 B0.1@14")), [("complete", "B0.1 BW0.1 F0.1")], id="B and BW"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 F0.2@14")), [("complete", "F0.2")], id="no such micro-batch"),
        pytest.param(spoilt(("BW0.1@11", "BW0.1@11 F2.0@14")), [("complete", "F2.0")], id="no such stage"),
        pytest.param(
            (RIGHT[0].replace(" BW0.1@11", ""), RIGHT[1] + " BW0.1@11"), [("placement", "BW0.1")], id="another device"
        ),
        pytest.param(RIGHT[:1], [("placement", "")], id="a device too few"),
        pytest.param((*RIGHT, ""), [("placement", "")], id="a device too many"),
        pytest.param(
            spoilt(("W0.0@9 BW0.1@11", "BW0.1@9&W0.0@11")), [("overlap", "BW0.1 W0.0")], id="slot of two backwards"
        ),
        pytest.param(spoilt(("F0.0@0 F0.1@1", "F0.0@0&F0.1@1")), [("overlap", "F0.0 F0.1")], id="slot of two forwards"),
        pytest.param(
            spoilt(("F1.1@3", "F1.1@4"), ("BW1.1@7", "BW1.1@8"), ("BW0.1@11", "BW0.1@12")),
            [("overlap", "F1.1 BW1.0")],
            id="torn",
        ),
        pytest.param(
            spoilt(("BW0.1@11", "BW0.1@10")),
            [("precedence", "BW1.1 BW0.1"), ("overlap", "W0.0 BW0.1")],
            id="two at a time",
        ),
        pytest.param(spoilt(("F0.0@0 F0.1@1", "F0.1@1 F0.0@0")), [("order", "F0.1 F0.0")], id="against the order"),
        pytest.param(spoilt(("F0.0@0", "F0.0@-1")), [("times", "F0.0")], id="before time 0"),
        pytest.param(spoilt(("F1.0@2", "F1.0@1")), [("precedence", "F0.0 F1.0")], id="F before its activation comes"),
        pytest.param(spoilt(("B0.0@8", "B0.0@7")), [("precedence", "BW1.0 B0.0")], id="no gradient yet: block"),
        pytest.param(spoilt(("B0.0@8 W0.0@9", "W0.0@6 B0.0@8")), [("precedence", "B0.0 W0.0")], id="W before B"),
        pytest.param(
            spoilt(("F1.0@2 F1.1@3&BW1.0@3", "F1.0@3 F1.1@3&BW1.0@3")),
            [("precedence", "F1.0 BW1.0"), ("overlap", "F1.0 F1.1")],
            id="backward before its F ends",
        ),
    ],
)
def test_each_rule_broken_is_found_with_its_passes(rows: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    assert found(timed(two_devices(), *rows)) == expected


def test_starts_that_are_missing_or_of_nothing() -> None:
    right = timed(two_devices(), *RIGHT)
    starts = dict(right.starts)
    del starts[Task(parse_pass("W0.0"))]
    starts[Task(parse_pass("W0.1"))] = 20
    starts[Task(parse_pass("F0.0"), 1)] = 1
    assert [v.text for v in validate(replace(right, starts=starts))] == [
        "W0.0 has no start",
        "F0.0/1 has a start but is not in the schedule",
        "W0.1 has a start but is not in the schedule",
    ]


def test_memory_is_told_once_a_device_in_the_unit_of_the_file() -> None:
    one = problem(1, 3, memory={"capacity": 1, "unit": "GiB"}, times={"forward": 1, "backward": 1})
    timeline = timed(one, "F0.0@0 F0.1@1 F0.2@2 BW0.0@3 BW0.1@4 BW0.2@5")
    (violation,) = validate(timeline)
    for fact in ("device 0", "2 GiB", "F0.1", "at 1", "capacity is 1"):
        assert fact in violation.text


def test_a_block_of_no_length_takes_its_turn_among_the_computations() -> None:
    """Wherever its forward would run alone."""
    one = problem(1, 3, times={"forward": 1, "backward": 4, "overlapped": 0})
    one = with_tasks(one, {(F, 0): (TaskSpec("ep", 1),)})
    assert found(timed(one, "F0.0@0 F0.1@1 BW0.0@2 F0.2@6&BW0.1@6 BW0.2@6")) == []
    assert found(timed(one, "F0.0@0 F0.1@1 BW0.0@2 F0.2@4&BW0.1@4 BW0.2@6")) == [("overlap", "BW0.0 F0.2")]


def without_length(stage: Stage) -> Stage:
    return replace(
        stage,
        forward=0,
        backward=0,
        weight=None if stage.weight is None else 0,
        fused=0,
        transfer=0,
        blocks=Blocks(None if stage.blocks.ticks is None else 0),
        tasks=tuple((kind, tuple(task._replace(ticks=0) for task in tasks)) for kind, tasks in stage.tasks),
    )


@in_turn("seed", range(75))
def test_an_order_of_passes_of_no_length_is_valid_where_it_runs(seed: int) -> None:
    """All times are 0, so that only circles are left to find: where the simulator finds one too."""
    rng = Random(seed)
    one = random_problem(rng, parts=seed % 2 == 0)
    one = replace(one, stages=tuple(map(without_length, one.stages)), links=())
    order = shuffled(one, rng, 0.2) if seed % 3 else random_order(one, rng, 0.2)
    game = game_of(one, order)
    starts = dict.fromkeys((*game.ticks, *map(Task, game.blocks.values())), 0)
    runs = game.starts(arcs_of(game, order)) is not None
    assert ({violation.rule for violation in validate(Timeline(one, order, starts))} - {"memory"} == set()) == runs
