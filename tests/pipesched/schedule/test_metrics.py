"""Metrics of a timeline by hand: makespan, span, bubbles, memory, and what each stream exposes."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import F, Task, parse_pass
from pipesched.problem.problem import Objective
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from tests.support.columns import with_tasks
from tests.support.in_turn import in_turn
from tests.support.makers import problem, random_order, random_problem, schedule, with_parts
from tests.support.task_brute_force import drawn, game_of

ROWS = ("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")


def test_one_forward_one_backward() -> None:
    """F takes 1, BW 2: device 0 works in [0, 2], [4, 6], [7, 9], device 1 in [1, 7] without a gap."""
    metrics = measure(simulate(problem(2, 2, times={"forward": 1, "backward": 2}), schedule(*ROWS)))
    assert (metrics.makespan_ticks, metrics.span_ticks, metrics.work_ticks) == (9, 9, (6, 6))
    assert metrics.peak_quanta == (2, 1)
    assert metrics.period_ticks is None
    assert metrics.idle_ratio == pytest.approx(1 - 12 / 18)
    assert metrics.bubbles == {"makespan": pytest.approx(1 / 3), "span": pytest.approx(1 / 3)}
    assert metrics.bubble(Objective.SPAN) == pytest.approx(1 / 3)


def test_span_is_the_longest_stay_of_a_device_makespan_counts_from_zero() -> None:
    """Device 0 starts at 3 and ends at 10, device 1 runs from 5 to 7."""
    one = problem(2, 1, times={"forward": 1, "backward": 2, "weight": 3, "fused": 2, "transfer": 0})
    starts = {"F0.0": 3, "F1.0": 4, "BW1.0": 5, "B0.0": 7, "W0.0": 9}
    orders = schedule("F0.0 B0.0 W0.0", "F1.0 BW1.0")
    metrics = measure(Timeline(one, orders, {Task(parse_pass(p)): start for p, start in starts.items()}))
    assert (metrics.makespan_ticks, metrics.span_ticks, metrics.work_ticks) == (12, 9, (6, 3))
    assert metrics.value_ticks(Objective.MAKESPAN) == 12
    assert metrics.value_ticks(Objective.SPAN) == 9
    assert metrics.bubble(Objective.MAKESPAN) == pytest.approx(1 / 2)
    assert metrics.bubble(Objective.SPAN) == pytest.approx(1 / 3)
    assert metrics.idle_ratio == pytest.approx(1 - 9 / 24)


def test_the_busiest_device_sets_the_bubble() -> None:
    metrics = measure(simulate(problem(2, 2, times={"forward": [1, 3], "backward": [1, 3]}), schedule(*ROWS)))
    assert (metrics.makespan_ticks, metrics.work_ticks) == (14, (4, 12))
    assert metrics.bubble(Objective.MAKESPAN) == pytest.approx(1 - 12 / 14)
    assert metrics.idle_ratio == pytest.approx(1 - 16 / 28)


def test_idle_time_counts_all_devices_where_the_bubble_rate_counts_the_busiest() -> None:
    """Device 1 works 12 and device 0 works 4; with a period of 6 device 1 never waits."""
    metrics = measure(simulate(problem(2, 2, times={"forward": [1, 3], "backward": [1, 3]}), schedule(*ROWS)))
    assert metrics.idles == {"makespan": pytest.approx(1 - 8 / 14), "span": pytest.approx(1 - 8 / 14)}
    period = replace(metrics, period_ticks=6)
    assert period.bubble(Objective.PERIOD) == 0
    assert period.idle(Objective.PERIOD) == pytest.approx(1 - 8 / 12)


def test_a_device_with_no_micro_batch() -> None:
    """One micro-batch walks down; every device still has a stage of the first chain."""
    one = problem(2, 1, placement="bidirectional", times={"forward": 1, "backward": 2})
    assert measure(simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0"))).makespan_ticks == 6
    idle = measure(Timeline(one, schedule("F0.0", ""), {Task(parse_pass("F0.0")): 2}))
    assert (idle.makespan_ticks, idle.span_ticks, idle.work_ticks, idle.peak_quanta) == (3, 1, (1, 0), (1, 0))


def test_a_block_counts_once() -> None:
    one = problem(1, 2, times={"forward": 2, "backward": 3, "overlapped": 4})
    metrics = measure(simulate(one, schedule("F0.0 F0.1&BW0.0 BW0.1")))
    assert (metrics.makespan_ticks, metrics.work_ticks, metrics.peak_quanta) == (9, (9,), (2,))
    in_turn = measure(simulate(problem(1, 2, times={"forward": 2, "backward": 3}), schedule("F0.0 F0.1&BW0.0 BW0.1")))
    assert (in_turn.makespan_ticks, in_turn.work_ticks) == (10, (10,))


def test_work_is_compute_only() -> None:
    one = problem(1, 1, times={"forward": 5, "backward": 2})
    parts = {(F, 0): (TaskSpec(COMPUTE, 1), TaskSpec("ep", 4), TaskSpec(COMPUTE, 2))}
    timeline = simulate(with_tasks(one, parts), schedule("F0.0 BW0.0"))
    metrics = measure(timeline)
    assert (metrics.makespan_ticks, metrics.work_ticks) == (9, (5,))
    assert timeline.busy(0, "ep") == [(1, 5)]


@pytest.mark.parametrize(
    ("freed", "row", "steps"),
    [
        pytest.param(0, "F0.0 B0.0 W0.0", [(0, 0), (0, 4), (6, 0)], id="all with W"),
        pytest.param(1, "F0.0 B0.0 W0.0", [(0, 0), (0, 4), (3, 3), (6, 0)], id="a part with B"),
        pytest.param(4, "F0.0 B0.0 W0.0", [(0, 0), (0, 4), (3, 0)], id="all with B"),
        pytest.param(-2, "F0.0 B0.0 W0.0", [(0, 0), (0, 4), (1, 6), (6, 0)], id="B takes more when it starts"),
        pytest.param(-2, "F0.0 BW0.0", [(0, 0), (0, 4), (6, 0)], id="BW takes nothing"),
    ],
)
def test_memory_steps(freed: int, row: str, steps: list[tuple[int, int]]) -> None:
    one = problem(
        1, 1, times={"forward": 1, "backward": 2, "weight": 3}, memory={"activation": 4, "freed_by_backward": freed}
    )
    one = one.with_stages(activation=(4,), freed=(freed,))  # whatever the file's step
    timeline = simulate(one, schedule(row))
    assert memory_steps(timeline, 0) == steps
    assert measure(timeline).peak_quanta == (max(level for _, level in steps),)


@pytest.mark.parametrize(
    ("row", "peak"),
    [
        ("F0.0 BW0.0 F0.1 BW0.1", 1),
        ("F0.0 F0.1 BW0.0 BW0.1", 2),
        ("F0.1 BW0.1 F0.0 BW0.0", 1),
        ("F0.0 B0.0 F0.1 W0.0 BW0.1", 2),
    ],
)
@pytest.mark.parametrize("ticks", [0, 1])
def test_changes_at_one_tick_count_in_the_order_of_the_device(row: str, peak: int, ticks: int) -> None:
    one = problem(1, 2, times={"forward": ticks, "backward": ticks, "weight": ticks})
    assert measure(simulate(one, schedule(row))).peak_quanta == (peak,)


def by_ticks(timeline: Timeline) -> list[tuple[int, str, int, int]]:
    """Device, stream, ticks in which it works, and those of them in which the first stream does not."""
    one, game = timeline.problem, game_of(timeline.problem, timeline.schedule)
    working: dict[Resource, set[int]] = {Resource(d, s): set() for d in range(one.devices) for s in one.streams}
    for task, stream in game.stream.items():
        working[Resource(*stream)] |= {*range(timeline.starts[task], timeline.starts[task] + game.ticks[task])}
    first = one.streams[0]
    return [(*on, len(ticks), len(ticks - working[on._replace(stream=first)])) for on, ticks in working.items()]


@in_turn("seed", range(60))
def test_every_tick_counts_once(seed: int) -> None:
    rng = Random(seed)
    one = with_parts(random_problem(rng, parts=False), rng)
    orders = random_order(one, rng, pairs=0.4)
    timeline = simulate(one, drawn(one, rng, orders) if seed % 2 else orders)
    assert [(*of, busy, exposed) for of, busy, exposed in stream_use(timeline)] == by_ticks(timeline)


def test_one_stream_is_never_exposed() -> None:
    one = problem(2, 1, times={"forward": 2, "backward": 3, "transfer": 1})
    used = stream_use(simulate(one, schedule("F0.0 BW0.0", "F1.0 BW1.0")))
    assert [(use.of, use.busy, use.exposed) for use in used] == [((0, "compute"), 5, 0), ((1, "compute"), 5, 0)]
