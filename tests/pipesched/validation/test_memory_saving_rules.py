"""Offload judged: what memory is gone from when to when, and orders that keep it on these durations alone."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.schedule.memory_elsewhere import host_steps
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.makers import schedule


def task(text: str) -> Task:
    return Task(parse_pass(text))


def problem(capacity: float = 2, **memory: object) -> Problem:
    document: dict[str, Any] = {"devices": 1, "microbatches": 3, "times": {"forward": 4, "backward": 6}}
    return problem_from(document | {"memory": {"capacity": capacity} | memory})


COPIES = {"out": 3, "in": 5}
ORDER = "F0.0 O0.0 F0.1 F0.2 BW0.2 L0.0 BW0.1 BW0.0"


def offloading() -> Timeline:
    """Room for two: the third forward waits for the first one's copy out, its copy back for the third backward."""
    one, waits = problem(offload=COPIES), (("O0.0", "F0.2"), ("BW0.2", "L0.0"))
    plain = schedule(ORDER)
    passes = {stream: [p for p in ORDER.split() if p[0] in kinds] for stream, kinds in
              (("compute", "FB"), ("d2h", "O"), ("h2d", "L"))}  # fmt: skip
    orders = {Resource(0, stream): tuple(map(task, own)) for stream, own in passes.items()}
    return simulate(one, Schedule(plain.orders, "", orders, [Wait(task(a), task(b)) for a, b in waits]))


def test_what_moves_is_gone_from_the_end_of_the_copy_out_to_the_start_of_the_copy_back() -> None:
    timeline = offloading()
    assert validate(timeline) == []
    assert measure(timeline).peak_quanta == (2,)
    starts = {str(p): timeline.start(p) for p in timeline.schedule.passes()}
    assert starts == {"F0.0": 0, "O0.0": 4, "F0.1": 4, "F0.2": 8, "BW0.2": 12, "L0.0": 18, "BW0.1": 18, "BW0.0": 24}
    assert [step for step in dict(host_steps(timeline))[0,] if step[0] in (0, 4, 23)] == [(0, 0), (4, 1), (23, 0)]


@pytest.mark.parametrize("left", [("O0.0", "F0.2"), ("BW0.2", "L0.0")])
def test_a_missing_wait_is_found(left: tuple[str, str]) -> None:
    """On these durations nothing goes wrong; on others what waited would take memory that is not yet given back."""
    whole = offloading()
    waits = [wait for wait in whole.schedule.waits if (str(wait.before), str(wait.after)) != left]
    without = Schedule(whole.schedule.orders, "", whole.schedule.task_orders, waits)
    found = validate(Timeline(whole.problem, without, whole.starts))
    assert [(v.rule, str(v.passes[0])) for v in found] == [("memory", left[1])]
