"""Why devices idle, and the critical path: timelines small enough to work out by hand, and sums on random ones."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.critical_path import critical_path
from pipesched.simulation.idle_causes import idle_times
from pipesched.simulation.simulator import simulate, simulate_late
from tests.support.makers import problem, random_order, schedule
from tests.support.piece_problems import tiny_pieces

FUSED = {"forward": 1, "backward": 2}


def causes(timeline: Timeline) -> list[dict[str, int]]:
    return [{str(cause): ticks for cause, ticks in idle.items()} for idle in idle_times(timeline).devices]


def test_one_forward_one_backward() -> None:
    """Device 0 works in [0, 2], [6, 8], [9, 11] and device 1 in [2, 8] with a tick for each transfer."""
    one = problem(2, 2, times=FUSED | {"transfer": 1})
    timeline = simulate(one, schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"))
    assert measure(timeline).makespan_ticks == 11
    # BW1.0 runs until 5 and BW1.1 until 8; a tick later their gradients are there.
    assert causes(timeline) == [{"other devices": 3, "transfer": 2}, {"warm-up": 2, "cool-down": 3}]


def test_a_forward_that_memory_has_no_room_for_and_one_that_comes_later_in_the_order() -> None:
    rows = ("F0.0 BW0.0 F0.1 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")
    for capacity, cause in ((1, "memory"), (2, "order")):
        one = problem(2, 2, times=FUSED, memory={"capacity": capacity})
        first, second = causes(simulate(one, schedule(*rows)))
        assert first == {cause: 3, "other devices": 3}  # from 7 on F0.1 has run, too
        # Until F0.1 ends nothing is there for device 1; then F1.1 is, at once.
        assert second == {"warm-up": 1, "other devices": 3, "cool-down": 2}


def test_what_the_own_streams_have_not_finished() -> None:
    one = problem(
        1, 1, streams=["compute", "comm"], times={"transfer": 0},
        tasks={"forward": [{"name": "a", "time": 2}, {"name": "x", "time": 3, "on": "comm"}, {"name": "b", "time": 1}],
               "backward": [{"name": "c", "time": 4}]},
    )  # fmt: skip
    assert causes(simulate(one, schedule("F0.0 BW0.0"))) == [{"other streams": 3}]


def test_what_waits_for_an_earlier_piece_of_its_micro_batch() -> None:
    """F1.0.1 could start at 2, when F0.0.1 has ended, and F1.0.0 runs until 6; then F1.0.1 and BW1.0.1, until 8."""
    one = problem(2, 1, sequence_chunks=2, times={"forward": [[1, 1], [5, 1]], "backward": 1})
    timeline = simulate(one, HEURISTICS["seq1f1b"].order(one))
    assert causes(timeline) == [{"chunk": 4, "other devices": 2}, {"warm-up": 1, "cool-down": 1}]


def test_a_pass_that_starts_later_than_it_could_waits_for_the_order() -> None:
    one = problem(1, 1, times=FUSED)
    starts = {Task(parse_pass("F0.0")): 0, Task(parse_pass("BW0.0")): 5}
    assert causes(Timeline(one, schedule("F0.0 BW0.0"), starts)) == [{"order": 4}]


SHAPES: list[dict[str, object]] = [
    {},
    {"placement": "v-shape", "memory": {"capacity": 4}},
    {"placement": "interleaved", "chunks": 2, "times": {"forward": 2, "backward": 3, "weight": 1, "transfer": 1}},
    {"placement": "bidirectional", "times": {"forward": 2, "backward": 4, "overlapped": 5}},
    {"microbatch_scale": [1, 2, 1, 3], "memory": {"capacity": 9}},
]


@pytest.mark.parametrize("keys", SHAPES, ids=str)
def test_the_causes_add_up_to_the_idle_time(keys: dict[str, object]) -> None:
    one: Problem = problem(3 if "placement" not in keys else 4, 4, **keys)
    for seed in range(8):
        timeline = simulate(one, random_order(one, Random(seed), pairs=0.3))
        adds_up(timeline)


@pytest.mark.parametrize("seed", [18, 20, 28])
def test_the_causes_add_up_where_pieces_wait_for_each_other(seed: int) -> None:
    one = tiny_pieces(Random(seed))
    timeline = simulate(one, HEURISTICS["slimpipe" if seed == 28 else "terapipe"].order(one))
    adds_up(timeline)
    assert "chunk" in {cause for idle in causes(timeline) for cause in idle}


def adds_up(timeline: Timeline) -> None:
    found, metrics = idle_times(timeline), measure(timeline)
    assert [sum(idle.values()) for idle in found.devices] == [
        metrics.makespan_ticks - work for work in metrics.work_ticks
    ]
    assert sum(found.shares().values()) == pytest.approx(metrics.idle_ratio)
    assert all(ticks > 0 for idle in found.devices for ticks in idle.values())


def test_of_two_devices_by_hand() -> None:
    """F0.0, F1.0, B1.0 and back to device 0, each as soon as the one before has ended; the transfer takes 1."""
    one = problem(2, 1, times={"forward": 2, "backward": 3, "transfer": 1})
    path = critical_path(simulate(one, HEURISTICS["1f1b"].order(one)))
    assert [str(task) for tasks in path for task in tasks] == ["F0.0", "F1.0", "BW1.0", "BW0.0"]


@pytest.mark.parametrize("seed", range(6))
def test_each_starts_when_the_one_before_lets_it(seed: int) -> None:
    draw = Random(seed)
    times = {
        "forward": draw.randint(1, 9),
        "backward": draw.randint(1, 9),
        "weight": draw.randint(1, 9),
        "transfer": draw.randint(0, 3),
    }
    one = problem(3, 5, times=times, objective="span" if seed % 2 else "makespan")
    order = HEURISTICS["zb-h1"].order(one)
    timeline = simulate_late(one, order) if seed % 2 else simulate(one, order)
    path = [tasks[0] for tasks in critical_path(timeline)]
    for before, after in pairwise(path):
        same = one.device(before.of) == one.device(after.of)
        lag = 0 if same else times["transfer"]
        assert timeline.end(before.of) + lag == timeline.starts[after]
    ends = [max(map(timeline.end, timeline.schedule.passes_on(d))) for d in range(3)]
    begins = [min(map(timeline.start, timeline.schedule.passes_on(d))) for d in range(3)]
    if seed % 2:
        spans = [end - begin for begin, end in zip(begins, ends, strict=True)]
        assert timeline.end(path[-1].of) in [end for end, span in zip(ends, spans, strict=True) if span == max(spans)]
    else:
        assert timeline.end(path[-1].of) == max(ends) and timeline.starts[path[0]] == 0


def test_a_block_is_one_and_its_tasks_come_together() -> None:
    one = problem(2, 4, times={"forward": 1, "backward": 1.5, "weight": 1, "overlapped": 3})
    path = critical_path(simulate(one, HEURISTICS["1f1b-overlap"].order(one)))
    assert any(len(tasks) == 2 for tasks in path)
    assert all(isinstance(task, Task) for tasks in path for task in tasks)


def test_the_work_grows_with_the_passes_and_not_with_their_square() -> None:
    """Of 4,096 micro-batches that ran one after the other, each with a gap before it, it was minutes."""
    calls = []
    for microbatches in (50, 200):
        one = problem(3, microbatches, times=FUSED | {"transfer": 1}, memory={"capacity": 1})
        timeline = simulate(one, in_turn(microbatches))
        calls.append(calls_of(partial(idle_times, timeline)))
    assert calls[1] < 5 * calls[0]


def in_turn(microbatches: int) -> Schedule:
    """Of three devices, one micro-batch after the other."""
    rows = (" ".join(f"F{d}.{i} BW{d}.{i}" for i in range(microbatches)) for d in range(3))
    return schedule(*rows)


def calls_of(work: Callable[[], object]) -> int:
    """How often functions are called, and generators go on, in Python."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
