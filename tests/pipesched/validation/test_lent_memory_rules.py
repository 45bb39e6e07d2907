"""Activations that move to another device judged: what it holds from when to when, and waits between the two."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.state_file import state_from
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.state import Ran
from pipesched.schedule.memory_elsewhere import steps_elsewhere
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.state_rules import validate_from_state
from pipesched.validation.validator import validate
from tests.support.makers import schedule


def task(text: str) -> Task:
    return Task(parse_pass(text))


def problem(on: object, capacity: list[int]) -> Problem:
    """Two devices; what moves, moves from device 0 to device 1, in 2 and back in 3."""
    document: dict[str, Any] = {"devices": 2, "microbatches": 2, "times": {"forward": 4, "backward": 4, "transfer": 1}}
    offload = {"out": 2, "in": 3, "on": on, "to": [1, "host"]}
    decide = {"offload": ["free", "never"]}
    return problem_from(document | {"memory": {"capacity": capacity, "offload": offload, "decide": decide}})


def timeline(on: str = "nvlink", capacity: tuple[int, int] = (1, 2), waits: bool = True) -> Timeline:
    """The first activation moves while the second forward runs on neither device, and back before its backward."""
    rows = "F0.0 O0.0 F0.1 BW0.1 L0.0 BW0.0", "F1.1 BW1.1 F1.0 BW1.0"
    one = problem(on, list(capacity))
    orders = {}
    for device, row in enumerate(rows):
        for name in row.split():
            stream = on if name[0] in "OL" else "compute"
            where = Resource(device, stream)
            orders[where] = (*orders.get(where, ()), task(name))
    order = [("O0.0", "F0.1"), ("BW0.1", "L0.0")] if on != "compute" else []
    order += [("L0.0", "F1.0")] * (capacity[1] == 1) if waits else []
    found = Schedule(schedule(*rows).orders, "", orders, [Wait(task(a), task(b)) for a, b in order])
    return simulate(one, found)


def rules(found: Timeline) -> list[tuple[str, str]]:
    return [(one.rule, str(one.passes[0])) for one in validate(found)]


@pytest.mark.parametrize("on", ["nvlink", "compute"])
def test_the_other_device_holds_it_from_the_start_of_the_copy_out_to_the_end_of_the_copy_back(on: str) -> None:
    one = timeline(on)
    assert rules(one) == []
    start = {str(p): (one.start(p), one.end(p)) for p in one.schedule.passes()}
    out, back = start["O0.0"][0] * one.problem.tick, start["L0.0"][1] * one.problem.tick
    assert (out, start["F0.1"][0] * one.problem.tick) == (4, 6)
    steps = [(tick * one.problem.tick, level) for tick, level in steps_elsewhere(one, 1)]
    assert (steps[0], (out, 1), (back, 0)) == ((0, 0), *[step for step in steps if step[0] in (out, back)])
    assert measure(one).peak_quanta == (1, 2)
    assert max(level for _, level in memory_steps(one, 1)) == 2


@pytest.mark.parametrize("on", ["nvlink", "compute"])
def test_a_device_that_also_holds_its_own_has_no_room(on: str) -> None:
    (found,) = validate(timeline(on, (1, 1)))
    assert (found.rule, str(found.passes[0])) == ("memory", "F1.1")
    assert "device 1 holds 2 activations when F1.1 starts at" in found.text


@pytest.mark.parametrize("on", ["nvlink", "compute"])
def test_without_a_wait_between_the_devices_other_times_take_too_much(on: str) -> None:
    """As it runs, the second forward of device 1 starts after the copy back has ended."""

    def late(waits: bool) -> Timeline:
        rows = "F0.0 O0.0 L0.0 BW0.0", "F1.0 BW1.0"
        one = problem_from({"devices": 2, "microbatches": 1, "times": {"forward": 4, "backward": 4, "transfer": 9},
                            "memory": {"capacity": [1, 1], "offload": {"out": 2, "in": 3, "on": on, "to": [1, "host"]},
                                       "decide": {"offload": ["always", "never"]}}})  # fmt: skip
        orders = {}
        for device, row in enumerate(rows):
            for name in row.split():
                where = Resource(device, on if name[0] in "OL" else "compute")
                orders[where] = (*orders.get(where, ()), task(name))
        order = [Wait(task("L0.0"), task("F1.0"))] * waits
        return simulate(one, Schedule(schedule(*rows).orders, "", orders, order))

    assert rules(late(True)) == []
    assert rules(late(False)) == [("memory", "F1.0")]
    assert "if tasks take other times" in validate(late(False))[0].text


def test_a_state_counts_what_another_device_holds() -> None:
    one = timeline()
    entries = [{"name": name, "start": start, "end": end} for name, start, end in
               (("F0.0", 0, 4), ("O0.0", 4, 6), ("F1.0", 5, 9), ("F0.1", 6, 10))]  # fmt: skip
    document = {"now": 10, "passes": entries}
    _, state = state_from(document, problem("nvlink", [1, 2]))
    assert len(state.ran) == 4
    with pytest.raises(BadInput, match=r"device 1 holds 2 .* by them; its capacity is 1"):
        state_from(document, problem("nvlink", [1, 1]))
    assert one.problem.room == (1, 2)


def test_a_replanned_iteration_has_room_for_what_others_moved() -> None:
    one = timeline(capacity=(1, 2))
    _, state = state_from({"now": 0, "passes": []}, one.problem)
    tasks = {of: Ran(start, start + one.problem.network.tasks[of.of[:2]][0].ticks) for of, start in one.starts.items()}
    assert validate_from_state(one.problem, state, tasks) == []
    tight = problem("nvlink", [1, 1])
    assert [(v.rule, str(v.passes[0])) for v in validate_from_state(tight, state, tasks)] == [("memory", "F1.1")]
