"""Offload and recomputation judged: one example that breaks each rule, and memory on random durations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.problem import Problem
from pipesched.schedule.host_memory import host_steps
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from tests.support.makers import schedule


def task(text: str) -> Task:
    return Task(parse_pass(text))


def problem(capacity: float = 2, devices: int = 1, **memory: object) -> Problem:
    document: dict[str, Any] = {"devices": devices, "microbatches": 3, "times": {"forward": 4, "backward": 6}}
    return problem_from(document | {"memory": {"capacity": capacity} | memory})


COPIES = {"out": 3, "in": 5}
ORDER = "F0.0 O0.0 F0.1 F0.2 BW0.2 L0.0 BW0.1 BW0.0"


def offloading(waits: tuple[tuple[str, str], ...] = (("O0.0", "F0.2"), ("BW0.2", "L0.0")), **more: object) -> Timeline:
    """Room for two: the third forward waits for the first one's copy out, its copy back for the third backward."""
    one = problem(offload=COPIES | more)
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
    assert [step for step in host_steps(timeline, (0,)) if step[0] in (0, 4, 23)] == [(0, 0), (4, 1), (23, 0)]


def broken(timeline: Timeline, **starts: int) -> Timeline:
    moved = {task(name.replace("_", ".")): start for name, start in starts.items()}
    return Timeline(timeline.problem, timeline.schedule, dict(timeline.starts) | moved)


@pytest.mark.parametrize(
    ("starts", "rule", "passes"),
    [
        ({"O0_0": 3}, "precedence", "F0.0 O0.0"),
        ({"L0_0": 6}, "precedence", "O0.0 L0.0"),
        ({"BW0_0": 22, "BW0_1": 12}, "precedence", "L0.0 BW0.0"),
    ],
)
def test_copies_come_after_the_forward_and_before_the_backward(starts: dict[str, int], rule: str, passes: str) -> None:
    found = [one for one in validate(broken(offloading(), **starts)) if one.rule == rule]
    assert passes in {" ".join(map(str, one.passes)) for one in found}


def test_copies_of_one_stream_take_turns() -> None:
    """Two copies out at once, on the stream of a device and on one that two devices share."""
    one = problem(3, offload=COPIES)
    two = simulate(one, schedule("F0.0 O0.0 F0.1 O0.1 F0.2 L0.0 BW0.0 L0.1 BW0.1 BW0.2"))
    assert validate(two) == []
    late = broken(two, O0_0=7)
    assert ("overlap", "O0.0 O0.1") in {(v.rule, " ".join(map(str, v.passes))) for v in validate(late)}
    shared = replace(problem(3, 2, offload=COPIES | {"on": {"stream": "pcie", "devices": [0, 1]}}), microbatches=1)
    assert shared.dependencies.resource(1, "pcie") == Resource(0, "pcie")
    plain = schedule(*(f"F{s}.0 O{s}.0 L{s}.0 BW{s}.0" for s in (0, 1)))
    orders = {Resource(s, "compute"): (task(f"F{s}.0"), task(f"BW{s}.0")) for s in (0, 1)}
    orders[Resource(0, "pcie")] = tuple(map(task, ("O0.0", "O1.0", "L1.0", "L0.0")))
    timeline = simulate(shared, Schedule(plain.orders, "", orders))
    assert validate(timeline) == []
    clash = broken(timeline, O0_0=timeline.start(parse_pass("O1.0")) - 2)
    assert {"overlap"} == {v.rule for v in validate(clash)}


def test_too_much_on_the_device_is_found() -> None:
    """The copy back starts when the third backward has not yet ended."""
    timeline = broken(offloading(), L0_0=13)
    assert [(v.rule, str(v.passes[-1])) for v in validate(timeline) if v.rule == "memory"] == [("memory", "L0.0")]


def test_too_much_on_the_host_is_found() -> None:
    one = problem(3, offload=COPIES | {"host_capacity": 1})
    order = "F0.0 O0.0 F0.1 O0.1 F0.2 L0.0 BW0.0 L0.1 BW0.1 BW0.2"
    found = validate(simulate(one, schedule(order)))
    assert [(v.rule, str(v.passes[0])) for v in found] == [("memory", "O0.1")]
    assert validate(simulate(problem(3, offload=COPIES | {"host_capacity": 2}), schedule(order))) == []


@pytest.mark.parametrize("left", [("O0.0", "F0.2"), ("BW0.2", "L0.0")])
def test_a_missing_wait_is_found(left: tuple[str, str]) -> None:
    """On these durations nothing goes wrong; on others what waited would take memory that is not yet given back."""
    whole = offloading()
    waits = [wait for wait in whole.schedule.waits if (str(wait.before), str(wait.after)) != left]
    without = Schedule(whole.schedule.orders, "", whole.schedule.task_orders, waits)
    found = validate(Timeline(whole.problem, without, whole.starts))
    assert [(v.rule, str(v.passes[0])) for v in found] == [("memory", left[1])]


def test_a_missing_wait_for_the_host_is_found() -> None:
    """The second copy out waits by the times alone for the first one's copy back."""
    one = problem(3, offload=COPIES | {"host_capacity": 1, "on": ["d2h", "h2d"]})
    order = "F0.0 O0.0 F0.1 L0.0 BW0.0 F0.2 O0.1 L0.1 BW0.1 BW0.2"
    timeline = simulate(one, schedule(order))
    late = broken(timeline, O0_1=18, L0_1=21, BW0_1=26, BW0_2=32)
    assert [(v.rule, str(v.passes[0])) for v in validate(late)] == [("memory", "O0.1")]
    schedule_with = Schedule(late.schedule.orders, "", None, [Wait(task("L0.0"), task("O0.1"))])
    assert validate(Timeline(one, schedule_with, late.starts)) == []


def test_a_recomputation_needs_its_forward_and_no_gradient() -> None:
    one = problem(1, 2, recompute=[{"name": "full", "time": 3, "keeps": 0}, {"name": "half", "time": 1, "keeps": 0.5}])
    order = "F0.0 F0.1 R0.0 BW0.0 R0.1 BW0.1 F0.2 BW0.2", "F1.0 BW1.0 F1.1 BW1.1 F1.2 BW1.2"
    timeline = simulate(one, schedule(*order))
    assert validate(timeline) == []
    assert measure(timeline).peak_quanta == (2, 2)  # halves of an activation
    starts = {str(p): timeline.start(p) for p in timeline.schedule.passes_on(0)}
    assert (starts["R0.0"], starts["BW0.0"]) == (8, 14)  # before the gradient has come
    more = simulate(one, schedule(order[0].replace("R0.0", "Rb0.0").replace("R0.1", "Rb0.1"), order[1]))
    assert [(v.rule, str(v.passes[0])) for v in validate(more)] == [("memory", "F0.1")]


def test_what_a_forward_drops_is_given_back_by_order_alone() -> None:
    """Beside streams for copies: between a forward and its recomputation another micro-batch has the memory."""
    one = problem(1, offload=COPIES, recompute=[{"name": "full", "time": 3, "keeps": 0}])
    assert len(one.streams) == 3
    timeline = simulate(one, schedule("F0.0 F0.1 R0.0 BW0.0 R0.1 BW0.1 F0.2 BW0.2"))
    assert validate(timeline) == []
    kept = simulate(one, schedule("F0.0 F0.1 BW0.0 R0.1 BW0.1 F0.2 BW0.2"))
    assert {(v.rule, str(v.passes[0])) for v in validate(kept)} == {("memory", "F0.1")}


@pytest.mark.parametrize(
    "order", ["F0.0 BW0.0", "F0.0 O0.0 BW0.0", "F0.0 R0.0 O0.0 L0.0 BW0.0", "F0.0 R0.0 Rb0.0 BW0.0"]
)
def test_one_way_and_no_other_is_run(order: str) -> None:
    ways = [{"name": "full", "time": 3}, {"name": "half", "time": 1, "keeps": 0.5}]
    one = replace(problem(offload=COPIES, recompute=ways), microbatches=1)
    stage = replace(one.stages[0], may_keep=False)
    assert validate(simulate(replace(one, stages=(stage,)), schedule("F0.0 O0.0 L0.0 BW0.0"))) == []
    found = validate(Timeline(replace(one, stages=(stage,)), schedule(order), {}))
    assert {v.rule for v in found} == {"complete"}
