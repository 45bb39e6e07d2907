"""The critical path: every task on it starts when the one before lets it, and its end is the objective's."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.passes import Task
from pipesched.simulation.critical_path import critical_path
from pipesched.simulation.simulator import simulate, simulate_late
from tests.support.makers import problem


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
