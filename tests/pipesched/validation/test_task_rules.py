"""Rules about tasks: one example that breaks each of them, on a forward, a backward and its weights over two streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.files.schedules.task_texts import TaskReader
from pipesched.problem.network.task_network import Resource
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
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


def test_tasks_in_each_others_gaps_take_these_times() -> None:
    timeline = mixed()
    assert found(timeline) == []
    texts = {timeline.problem.task_text(task): start for task, start in timeline.starts.items()}
    assert [texts[task] for task in COMPUTE.split()] == [0, 3, 6, 9, 12, 16, 18, 22, 26, 27, 31, 33]
    assert [texts[task] for task in COMM.split()] == [3, 6, 16, 22, 26, 31]


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


def test_the_order_of_a_stream() -> None:
    """The times keep every precedence, and run two tasks in the other order than the schedule's."""
    one, plain = in_turn()
    other = orders(one, plain, COMPUTE, COMM.replace("W0.0/sync W0.1/sync", "W0.1/sync W0.0/sync"))
    text = "device 0, comm: W0.0/sync starts at 26, before W0.1/sync ends at 33"
    assert found(replace(mixed(), schedule=other)) == [("order", text)]


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


def test_two_tasks_at_a_time() -> None:
    text = "device 0, compute: W0.0/mlp-w starts at 15, before B0.0/mlp ends at 16"
    assert ("overlap", text) in found(moved(mixed(), "W0.0/mlp-w", 15))


@pytest.mark.parametrize(
    ("task", "start", "text"),
    [
        ("F0.1/dispatch", 5, "F0.1/dispatch starts before F0.1/attn ends"),
        ("B0.0/attn", 18, "B0.0/attn starts before B0.0/combine ends"),
        ("W0.0/mlp-w", 12, "W0.0/mlp-w starts before B0.0/mlp ends"),
        ("W0.0/attn-w", 25, "W0.0/attn-w starts before B0.0/attn ends"),
        ("W0.1/sync", 28, "W0.1/sync starts before B0.1/attn ends"),
    ],
)
def test_what_a_task_waits_for_inside_its_micro_batch(task: str, start: int, text: str) -> None:
    assert ("precedence", text) in found(moved(mixed(), task, start))


def test_an_event_between_streams() -> None:
    one, plain = in_turn()
    waiting = orders(one, plain, COMPUTE, COMM, (("W0.0/sync", "W0.1/mlp-w"),))
    assert found(simulate(one, waiting)) == []
    late = orders(one, plain, COMPUTE, COMM, (("W0.1/sync", "W0.1/attn-w"),))
    text = "W0.1/attn-w starts at 33, but waits for W0.1/sync, which ends at 33"
    assert found(replace(mixed(), schedule=late)) == []
    early = moved(replace(mixed(), schedule=late), "W0.1/sync", 32)
    assert found(early) == [("precedence", text.replace("which ends at 33", "which ends at 34"))]


def test_a_transfer_on_a_stream_arrives_when_its_task_ends() -> None:
    one = problem(2, 1, times={"transfer": {"time": 2, "on": "comm"}})
    timeline = simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0"))
    texts = {one.task_text(task): start for task, start in timeline.starts.items()}
    assert (texts["F0.0/transfer"], texts["F1.0/attn"], timeline.end(TaskReader(one).task("F0.0/attn").of)) == (
        8,
        10,
        8,
    )
    assert found(timeline) == []
    text = "F1.0 starts at 9, but F0.0 ends at 8 and its transfer ends at 10"
    assert ("precedence", text) in found(moved(timeline, "F1.0/attn", 9))
    late = moved(timeline, "F0.0/transfer", 9)
    text = "F1.0 starts at 10, but F0.0 ends at 8 and its transfer ends at 11"
    assert found(late) == [("precedence", text)]
    early = moved(timeline, "F0.0/transfer", 7)
    assert found(early) == [("precedence", "F0.0/transfer starts before F0.0/mlp ends")]


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


def test_memory_given_back_at_an_instant_is_there_for_what_starts() -> None:
    """Whatever the order of passes is: the second forward waits for the end of the first backward."""
    tasks = {
        "forward": [{"name": "attn", "time": 3}],
        "backward": [{"name": "mlp", "time": 4}, {"name": "combine", "on": "comm", "time": 3}],
    }
    one = problem(tasks=tasks, memory={"capacity": 1})
    plain = schedule("F0.0 F0.1 BW0.0 BW0.1")
    wait = (("BW0.0/combine", "F0.1/attn"),)
    given = orders(one, plain, "F0.0/attn BW0.0/mlp F0.1/attn BW0.1/mlp", "BW0.0/combine BW0.1/combine", wait)
    timeline = simulate(one, given)
    assert found(timeline) == [] and measure(timeline).peak_quanta == (1,)


def test_all_tasks_of_a_weight_pass_must_be_known_to_have_ended() -> None:
    tasks = {
        "forward": [{"name": "f", "time": 1}],
        "backward": [{"name": "b", "time": 1}],
        "weight": [{"name": "far", "on": "comm", "time": 1}, {"name": "near", "time": 3}],
    }
    one = problem(tasks=tasks, memory={"capacity": 1})
    plain = schedule("F0.0 B0.0 W0.0 F0.1 B0.1 W0.1")
    assert [rule for rule, _ in found(simulate(one, plain))] == ["memory"]
    read = TaskReader(one).task
    safe = Schedule(plain.orders, "", waits=[Wait(read("W0.0/far"), read("F0.1/f"))])
    assert found(simulate(one, safe)) == []


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
