"""Rules about tasks: what is said of those that are broken, on a forward, a backward and its weights over two streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.schedules.task_texts import TaskReader
from pipesched.problem.network.task_network import Resource
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.makers import (
    schedule,
)

TASKS: Mapping[str, Any] = {
    "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 2}, {"name": "mlp", "time": 3}],
    "backward": [{"name": "mlp", "time": 4}, {"name": "combine", "on": "comm", "time": 3}, {"name": "attn", "time": 4}],
    "weight": [
        {"name": "mlp-w", "time": 2, "after": "mlp"},
        {"name": "attn-w", "time": 1, "after": "attn"},
        {"name": "sync", "on": "comm", "time": 2},
    ],
}


def problem(devices: int = 1, microbatches: int = 2, **keys: object) -> Problem:
    document = {"devices": devices, "microbatches": microbatches, "streams": ["compute", "comm"], "tasks": TASKS}
    return problem_from(document | keys)


def in_turn() -> tuple[Problem, Schedule]:
    return problem(), schedule("F0.0 B0.0 W0.0 F0.1 B0.1 W0.1")


def orders(one: Problem, plain: Schedule, compute: str, comm: str, waits: tuple[tuple[str, str], ...] = ()) -> Schedule:
    read = TaskReader(one).task
    streams = {"compute": compute.split(), "comm": comm.split()}
    tasks = {Resource(0, stream): tuple(map(read, texts)) for stream, texts in streams.items()}
    return Schedule(plain.orders, "", tasks, [Wait(read(before), read(after)) for before, after in waits])


# Two micro-batches in each other's gaps; the second forward's attention runs while the first one's tokens travel.
COMPUTE = (
    "F0.0/attn F0.1/attn F0.0/mlp F0.1/mlp B0.0/mlp W0.0/mlp-w B0.1/mlp B0.0/attn W0.0/attn-w B0.1/attn W0.1/mlp-w "
    "W0.1/attn-w"
)
COMM = "F0.0/dispatch F0.1/dispatch B0.0/combine B0.1/combine W0.0/sync W0.1/sync"


def mixed() -> Timeline:
    one, plain = in_turn()
    return simulate(one, orders(one, plain, COMPUTE, COMM))


def moved(timeline: Timeline, text: str, start: int) -> Timeline:
    """One task at another time."""
    return replace(timeline, starts=dict(timeline.starts) | {TaskReader(timeline.problem).task(text): start})


def found(timeline: Timeline) -> list[tuple[str, str]]:
    return [(violation.rule, violation.text) for violation in validate(timeline)]


def test_a_weight_pass_ends_with_the_last_of_its_tasks() -> None:
    timeline = mixed()
    read = TaskReader(timeline.problem).task
    assert (timeline.start(read("W0.0/sync").of), timeline.end(read("W0.0/sync").of)) == (16, 28)
    assert (timeline.start(read("W0.1/sync").of), timeline.end(read("W0.1/sync").of)) == (31, 34)
    rows = timeline.schedule.columns.passes
    begin, end = (dict(zip(rows, column.tolist(), strict=True)) for column in timeline.times)
    assert all((begin[p], end[p]) == (timeline.start(p), timeline.end(p)) for p in rows)
    # Alone, its tasks take as long as those of the busiest stream.
    assert timeline.problem.duration(read("W0.0/sync").of) == 3


def test_what_is_said_of_times() -> None:
    """That something is said wherever it has to be is the matter of test_every_kind.py."""
    one, plain = in_turn()
    for task, start, rule, text in (
        ("W0.0/mlp-w", 15, "overlap", "device 0, compute: W0.0/mlp-w starts at 15, before B0.0/mlp ends at 16"),
        ("B0.0/attn", 18, "precedence", "B0.0/attn starts before B0.0/combine ends"),
        ("W0.0/attn-w", 25, "precedence", "W0.0/attn-w starts before B0.0/attn ends"),
    ):
        assert (rule, text) in found(moved(mixed(), task, start))
    other = orders(one, plain, COMPUTE, COMM.replace("W0.0/sync W0.1/sync", "W0.1/sync W0.0/sync"))
    text = "device 0, comm: W0.0/sync starts at 26, before W0.1/sync ends at 33"
    assert found(replace(mixed(), schedule=other)) == [("order", text)]
    late = orders(one, plain, COMPUTE, COMM, (("W0.1/sync", "W0.1/attn-w"),))
    text = "W0.1/attn-w starts at 33, but waits for W0.1/sync, which ends at 34"
    assert found(moved(replace(mixed(), schedule=late), "W0.1/sync", 32)) == [("precedence", text)]
    sent = problem(2, 1, times={"transfer": {"time": 2, "on": "comm"}})
    timeline = simulate(sent, schedule("F0.0 BW0.0", "F1.0 BW1.0"))
    text = "F1.0 starts at 10, but F0.0 ends at 8 and its transfer ends at 11"
    assert found(moved(timeline, "F0.0/transfer", 9)) == [("precedence", text)]


def test_what_a_stream_must_run_is_in_its_order_once() -> None:
    one, plain = in_turn()
    twice, without = COMPUTE.replace("F0.1/attn ", "F0.1/attn F0.1/attn "), COMM.replace(" W0.1/sync", "")
    assert found(replace(mixed(), schedule=orders(one, plain, twice, without))) == [
        ("complete", "device 0, comm: W0.1/sync is in the order of tasks not at all; it must be once"),
        ("complete", "device 0, compute: F0.1/attn is in the order of tasks 2 times; it must be once"),
    ]
    tasks = mixed().schedule.task_orders
    compute, comm = (Resource(0, stream) for stream in ("compute", "comm"))
    only = Schedule(plain.orders, "", {compute: tasks[compute]})
    assert [rule for rule, _ in found(replace(mixed(), schedule=only))] == ["complete"] * len(tasks[comm])
    spare = Schedule(plain.orders, "", {**tasks, Resource(0, "spare"): tasks[comm][:1]})
    text = "device 0, spare: F0.0/dispatch is in the order of tasks once; it must be not at all"
    assert found(replace(mixed(), schedule=spare)) == [("complete", text)]


def test_the_simulator_takes_tasks_on_their_own_stream_once() -> None:
    one, plain = in_turn()
    wrong = {
        "F0.0/dispatch is in the order of device 0, compute, and not run there": (
            COMPUTE + " F0.0/dispatch",
            COMM[14:],
        ),
        "F0.1/attn appears twice": (COMPUTE.replace("F0.1/attn ", "F0.1/attn F0.1/attn "), COMM),
        "W0.1/sync is not in the order of its stream": (COMPUTE, COMM.replace(" W0.1/sync", "")),
    }
    for text, (compute, comm) in wrong.items():
        with pytest.raises(BadInput, match=text):
            simulate(one, orders(one, plain, compute, comm))
    elsewhere = {Resource(1, where.stream): tasks for where, tasks in mixed().schedule.task_orders.items()}
    with pytest.raises(BadInput, match="device 1, compute, and not run there"):
        simulate(one, Schedule(plain.orders, "", elsewhere))


def test_passes_without_length_keep_the_order_of_micro_batches_too() -> None:
    tasks = {"forward": [{"name": "f", "time": 1}], "backward": [{"name": "b", "time": 0}]}
    one = problem(tasks=tasks, microbatch_order="fixed", microbatch_scale=[1, 2])
    plain = schedule("F0.0 F0.1 BW0.0 BW0.1")
    for compute, rules in (("BW0.0/b BW0.1/b", []), ("BW0.1/b BW0.0/b", ["micro-batch order"])):
        timeline = simulate(one, orders(one, plain, f"F0.0/f F0.1/f {compute}", ""))
        assert [rule for rule, _ in found(timeline)] == rules


def test_a_missing_wait() -> None:
    """The times keep the memory, but nothing makes the second forward wait for the end of the first backward."""
    tasks = {
        "forward": [{"name": "attn", "time": 3}],
        "backward": [{"name": "mlp", "time": 4}, {"name": "combine", "on": "comm", "time": 3}],
    }
    one = problem(tasks=tasks, memory={"capacity": 1})
    plain = schedule("F0.0 BW0.0 F0.1 BW0.1")
    assert [rule for rule, _ in found(simulate(one, plain))] == ["memory"]
    lucky = simulate(one, plain)
    for text, start in (("F0.1/attn", 10), ("BW0.1/mlp", 13), ("BW0.1/combine", 17)):
        lucky = moved(lucky, text, start)
    text = (
        "device 0 may hold 2 activations when F0.1 starts, if tasks take other times: its orders and waits do not let it "
        "wait for what gives memory back; its capacity is 1 activation"
    )
    assert found(lucky) == [("memory", text)]
    read = TaskReader(one).task
    safe = Schedule(plain.orders, "", waits=[Wait(read("BW0.0/combine"), read("F0.1/attn"))])
    assert found(replace(lucky, schedule=safe)) == []
    assert simulate(one, safe).starts == lucky.starts


def test_weight_tasks_without_length_follow_their_backward_task() -> None:
    """All is at 0, and the stream runs the weight task before the backward task that it waits for."""
    tasks = {kind: [{"name": kind[0], "time": 0}] for kind in ("forward", "backward", "weight")}
    one = problem(1, 1, tasks=tasks | {"weight": [{"name": "w", "time": 0}, {"name": "v", "time": 0}]})
    plain = schedule("F0.0 B0.0 W0.0")
    wrong = orders(one, plain, "F0.0/f W0.0/w B0.0/b W0.0/v", "")
    right = orders(one, plain, "F0.0/f B0.0/b W0.0/v W0.0/w", "")
    starts = simulate(one, plain).starts
    assert [rule for rule, _ in found(Timeline(one, wrong, starts))] == ["order"]
    assert found(Timeline(one, right, starts)) == []
