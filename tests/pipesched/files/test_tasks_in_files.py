"""Passes of tasks in problem and schedule files: each mistake has its line, and what is written is read back whole."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.files.problems.document import problem_document
from pipesched.files.schedule_file import ScheduleFile, read_schedule, to_text
from pipesched.problem.features.device_resources import DeviceResources
from pipesched.problem.passes import BW, B, F, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.columns import with_tasks
from tests.support.editor import accepts
from tests.support.in_turn import in_turn
from tests.support.makers import PLACEMENTS, problem, random_order
from tests.support.task_brute_force import drawn

MOE: dict[str, Any] = {
    "name": "moe", "devices": 2, "microbatches": 2, "time_unit": "ms", "streams": ["compute", "comm"],
    "tasks": {
        "forward": [
            {"name": "attn", "time": Decimal("4.60")},
            {"name": "dispatch", "on": "comm", "time": Decimal("4.35")},
            {"name": "mlp", "time": [Decimal("4.64"), 5]},
        ],
        "backward": [{"name": "mlp", "time": 6}, {"name": "dispatch", "on": "comm", "time": 5}, {"name": "attn", "time": 9}],
        "weight": [{"name": "mlp-w", "time": 5, "after": "mlp"}, {"name": "norm-w", "time": 1}],
        "layers": [1, 2],
    },
    "times": {"transfer": {"time": Decimal("0.6"), "on": "comm"}},
}  # fmt: skip


def changed(path: str, value: object) -> dict[str, Any]:
    """The document with another value at a path; None takes the key away."""
    document: Any = deepcopy(MOE)
    *sections, last = (int(key) if key.isdigit() else key for key in path.split("."))
    here = document
    for key in sections:
        here = here[key]
    if value is None:
        del here[last]
    else:
        here[last] = value
    return document


def test_the_tasks_of_every_pass() -> None:
    one = problem_from(MOE)
    assert one.streams == ("compute", "comm")
    assert [task.name for task in one.tasks_of(F, 0)] == ["attn", "dispatch", "mlp", "transfer"]
    assert [task.name for task in one.tasks_of(F, 1)] == [
        "attn.0", "dispatch.0", "mlp.0", "attn.1", "dispatch.1", "mlp.1",
    ]  # fmt: skip
    backward = ["mlp.1", "dispatch.1", "attn.1", "mlp.0", "dispatch.0", "attn.0", "transfer"]
    assert [task.name for task in one.tasks_of(B, 1)] == backward
    assert [(task.name, task.after) for task in one.tasks_of(W, 1)] == [
        ("mlp-w.1", 0), ("norm-w.1", None), ("mlp-w.0", 3), ("norm-w.0", None),
    ]  # fmt: skip
    assert [task.name for task in one.tasks_of(BW, 0)] == ["mlp", "mlp-w", "dispatch", "attn", "norm-w"]
    ticks = {task.name: one.in_units(task.ticks) for task in one.tasks_of(F, 0)}
    assert ticks == {"attn": 4.6, "dispatch": 4.35, "mlp": 4.64, "transfer": 0.6}
    assert (one.stages[0].forward, one.stages[1].weight) == (1359, 1200)


def test_layers_count_for_the_digits_that_sums_keep() -> None:
    tasks = [{"name": "a", "time": Decimal("1.000000000001")}, {"name": "b", "time": 1}]
    document = {"devices": 1, "microbatches": 2, "tasks": {"forward": tasks, "backward": tasks}}
    few = problem_from(document)
    many = problem_from(document | {"tasks": document["tasks"] | {"layers": 4000}})  # type: ignore[operator]
    assert few.notes == () and "rounded" in many.notes[0]


ONE_MISTAKE = {
    "unknown stream": ("tasks.forward.1.on", "com",
                       "tasks.forward[1].on: found 'com'; allowed: compute, comm; did you mean 'comm'?"),
    "unknown stream of transfers": ("times.transfer.on", "nvlink",
                                    "times.transfer.on: found 'nvlink'; allowed: compute, comm"),
    "unknown backward task": ("tasks.weight.0.after", "mpl",
                              "tasks.weight[0].after: found 'mpl'; allowed: mlp, dispatch, attn; did you mean 'mlp'?"),
    "after in a chain": ("tasks.forward.1.after", "attn",
                         "tasks.forward[1].after: unknown key; allowed: name, on, time, needs"),
    "forward time": ("times.forward", 3,
                     "times.forward: found with tasks; allowed: one of them, since tasks say what passes take"),
    "fused": ("times.fused", 3, "times.fused: found with tasks; allowed: one of them, since tasks say what passes take"),
    "blocks": ("times.overlapped", 3,
               "times.overlapped: found with tasks; allowed: one of them, since tasks say what passes take"),
    "length": ("tasks.forward.2.time", [1, 2, 3],
               "tasks.forward[2].time: found 3 values; allowed: one number, or a list of 2, one per stage"),
    "layers": ("tasks.layers", [1, 2, 3],
               "tasks.layers: found 3 values; allowed: one number, or a list of 2, one per stage"),
    "no layer": ("tasks.layers", [1, 0], "tasks.layers[1]: found 0; allowed: a whole number of at least 1"),
    "layers as text": ("tasks.layers", "two",
                       "tasks.layers: found 'two'; allowed: a whole number of at least 1, or a list of them, one per stage"),
    "name twice": ("tasks.backward.2.name", "mlp", "tasks.backward[2].name: found 'mlp' twice; allowed: each name once"),
    "no name": ("tasks.forward.0.name", None, "tasks.forward[0].name: missing; it is required"),
    "no time": ("tasks.weight.1.time", None, "tasks.weight[1].time: missing; it is required"),
    "negative": ("tasks.weight.1.time", -1,
                 "tasks.weight[1].time: found -1; allowed: a number of at least 0, or a list of them, one per stage "
                 "(finite, 0 or 1e-30 to 1e+12, at most 100 digits)"),
    "entry": ("tasks.forward.2.time", [1, "x"],
              "tasks.forward[2].time[1]: found 'x'; allowed: a number of at least 0 "
              "(finite, 0 or 1e-30 to 1e+12, at most 100 digits)"),
    "name of marks": ("tasks.forward.0.name", "a/b",
                      "tasks.forward[0].name: found 'a/b'; allowed: a name: a letter or _, then letters, digits, - and "
                      "_, up to 40 characters"),
    "taken name": ("tasks.forward.0.name", "transfer",
                   "tasks.forward[0].name: found 'transfer'; allowed: any other name, since the task that sends on is "
                   "called so"),
    "no tasks": ("tasks.forward", [], "tasks.forward: found []; allowed: at least one task, with name and time"),
    "no backward": ("tasks.backward", None, "tasks.backward: missing; it is required"),
    "one task": ("tasks.forward", 3,
                 "tasks.forward: found 3; allowed: a list, each of its entries with the keys name, on, time, needs"),
    "a task as text": ("tasks.weight.0", "mlp", "tasks.weight[0]: found 'mlp'; allowed: the keys name, on, time, after"),
    "stream twice": ("streams", ["compute", "comm", "comm"], "streams[2]: found 'comm' twice; allowed: each name once"),
    "stream as number": ("streams", ["compute", "comm", 3],
                         "streams[2]: found 3; allowed: a name: a letter or _, then letters, digits, - and _, up to 40 characters"),
    "no streams": ("streams", [], "streams: found []; allowed: a list of names"),
    "far too many": ("tasks.layers", 10**6,
                     "tasks: found 32000000 tasks in all; allowed: up to 2000000, with fewer layers or micro-batches"),
    "offload": ("memory", {"offload": {"out": 5}}, "memory.offload.in: missing; it is required"),
}  # fmt: skip


@in_turn(("path", "value", "line"), ONE_MISTAKE.values(), ids=ONE_MISTAKE)
def test_each_mistake_has_its_line(path: str, value: object, line: str) -> None:
    with pytest.raises(BadInput) as caught:
        problem_from(changed(path, value))
    assert list(caught.value.mistakes) == [f"problem: {line}"]


def test_nothing_is_said_of_names_that_are_missing_themselves() -> None:
    """`after` names a task of a backward whose name is missing: that is the mistake."""
    document = changed("tasks.backward", [{"time": 1}]) | {"objective": "makespan"}
    with pytest.raises(BadInput) as caught:
        problem_from(document)
    assert list(caught.value.mistakes) == ["problem: tasks.backward[0].name: missing; it is required"]


def test_blocks_and_transfers_on_a_stream_exclude_each_other() -> None:
    times = {"forward": 1, "backward": 2, "overlapped": 2, "transfer": {"time": 1, "on": "compute"}}
    with pytest.raises(BadInput, match=r"times\.transfer\.on: found with times\.overlapped; allowed: one of them"):
        problem_from({"devices": 2, "microbatches": 1, "times": times})
    blocks = problem(2, 1, times={"forward": 1, "backward": 2, "overlapped": 2, "transfer": 1})
    with pytest.raises(ValueError, match="allowed is one of them"):
        replace(blocks, resources=DeviceResources(transfer_stream="compute"))


BEYOND_A_SCHEMA = ("unknown stream", "unknown stream of transfers", "unknown backward task", "length", "layers",
                   "name twice", "taken name", "far too many")  # fmt: skip


def test_the_schema_judges_tasks_too() -> None:
    assert accepts(MOE)
    wrong = {name: changed(path, value) for name, (path, value, _) in ONE_MISTAKE.items()}
    assert {name for name in wrong if accepts(wrong[name])} == {*BEYOND_A_SCHEMA}


def test_yaml_reads_on_as_a_key(tmp_path: Path) -> None:
    path = tmp_path / "moe.yaml"
    path.write_text(
        "devices: 1\nmicrobatches: 1\nstreams: [gpu, on]\n"
        "tasks: {forward: [{name: a, time: 1}, {name: no, on: on, time: 2}], backward: [{name: b, time: 3}]}\n",
        encoding="utf-8",
    )
    one = read_problem(path)
    assert one.tasks_of(F, 0) == (TaskSpec("gpu", 1, "a"), TaskSpec("on", 2, "no"))
    assert one.streams == ("gpu", "on") and not one.splittable


KEYS: dict[str, dict[str, Any]] = {
    "moe": MOE,
    "fused alone": changed("tasks.weight", None),
    "one layer": changed("tasks.layers", None),
    "matrix": changed("times.transfer.time", [[0, 1], [2, 0]]),
    "latency": changed("times", {"transfer": 2}),
    "other names": {"devices": 1, "microbatches": 2, "streams": ["gpu", "net"], "times": {"forward": 1, "backward": 2}},
    "plain passes": {"devices": 2, "microbatches": 2, "streams": ["compute", "net", "unused"],
                     "times": {"forward": 1, "backward": 2, "weight": 1, "fused": 2, "transfer": {"time": 1, "on": "net"}}},
    **{name: MOE | {"tasks": MOE["tasks"] | {"layers": 2, "forward": MOE["tasks"]["forward"][:2]}, "devices": 3}
       | PLACEMENTS[name](3) for name in PLACEMENTS},
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_what_is_written_is_read_back_whole(name: str, tmp_path: Path) -> None:
    one = problem_from(KEYS[name])
    assert problem_from(problem_document(one)) == one
    for seed in range(4):
        rng = Random(seed)
        orders = random_order(one, rng)
        if seed % 2:
            orders = drawn(one, rng, orders)
        file = ScheduleFile(simulate(one, orders))
        path = tmp_path / "schedule.json"
        path.write_text(to_text(file), encoding="utf-8")
        again = read_schedule(path)
        assert again == file
        assert validate(again.timeline) == validate(file.timeline)


def test_what_a_schedule_file_says_of_tasks() -> None:
    one = problem_from(MOE | {"microbatches": 1})
    first, second = Pass(F, 0, 0), Pass(F, 1, 0)
    orders = Schedule(
        (((first,), (Pass(BW, 0, 0),)), ((second,), (Pass(BW, 1, 0),))), waits=[Wait(Task(first, 3), Task(second, 1))]
    )
    said = json.loads(to_text(ScheduleFile(simulate(one, orders))))
    assert list(said["starts"])[:5] == ["F0.0/attn", "F0.0/dispatch", "F0.0/mlp", "F0.0/transfer", "BW0.0/mlp"]
    assert said["waits"] == [["F0.0/transfer", "F1.0/dispatch.0"]]
    assert said["starts"]["F1.0/attn.0"] == 1359 + 60 and "task_orders" not in said


def test_a_plain_file_says_nothing_of_streams() -> None:
    one = problem(1, 1)
    said = json.loads(to_text(ScheduleFile(simulate(one, random_order(one, Random(0))))))
    assert not {"task_orders", "waits"} & said.keys() and not {"streams", "tasks"} & said["problem"].keys()


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("starts", {"F0.0/atn": 0}, "starts: found 'F0.0/atn'; allowed: the tasks of this pass, F0.0/attn, F0.0/dispatch, "
                                    "F0.0/mlp, F0.0/transfer"),
        ("task_orders", [{}], "task_orders: found [keys ]; allowed: for each device the tasks of each stream"),
        ("task_orders", [{"ep": []}, {}], "task_orders[0]: found 'ep'; allowed: a list of tasks for compute, comm"),
        ("waits", [["F0.0/attn"]], "waits: found [['F0.0/attn']]; allowed: pairs of tasks, of which the second waits"),
        ("waits", 0, "waits: found 0; allowed: pairs of tasks, of which the second waits"),
        ("waits", [["F0.0/attn", "F0"]], "waits[0][1]: found 'F0'; a pass is written as kind (F, B, W, BW, O, L, R, U, D, G, N or S), stage, dot, "
                                         "micro-batch: F2.0"),
    ],
)  # fmt: skip
def test_mistakes_of_a_schedule_file(key: str, value: object, line: str, tmp_path: Path) -> None:
    one = problem_from(MOE | {"microbatches": 1})
    said = json.loads(to_text(ScheduleFile(simulate(one, random_order(one, Random(0))))))
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(said | {key: value}), encoding="utf-8")
    with pytest.raises(BadInput) as caught:
        read_schedule(path)
    assert list(caught.value.mistakes) == [f"{path}: {line}"]


def test_what_no_problem_file_can_say() -> None:
    def refused(one: Problem, text: str) -> None:
        with pytest.raises(ValueError, match=text):
            problem_document(one)

    plain, moe = problem(2, 1), problem_from(MOE)
    refused(with_tasks(plain, {(F, 0): (TaskSpec("ep", 1),)}), "of one layer")
    refused(moe.with_stages(tasks=[moe.stages[0].tasks, ()]), "of one layer")
    refused(moe.with_stages(forward=[1, 1]), "the time of those tasks")
    uneven = dict(moe.stages[0].tasks) | {W: (TaskSpec("compute", 5, "mlp-w", 1),)}
    refused(moe.with_stages(tasks=[tuple(uneven.items()), moe.stages[1].tasks]), "of one layer")
