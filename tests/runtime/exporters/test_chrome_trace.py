"""The Chrome trace: boxes that nest, times that are the timeline's, arrows in pairs."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from pipesched.problem.passes import F, Pass, parse_pass
from pipesched.problem.problem import Problem
from pipesched.problem.stage import COMPUTE, TaskSpec
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from tests.support import makers
from tests.support.columns import with_tasks
from tests.support.makers import schedule

Event = dict[str, Any]

ROWS = {
    "linear": ("F0.0 F0.1 BW0.0 B0.1 W0.1", "F1.0 B1.0 F1.1 W1.0 BW1.1"),
    "v-shape": ("F0.0 F0.1 F3.0 BW3.0 F3.1 BW3.1 BW0.0 BW0.1", "F1.0 F2.0 F1.1 F2.1 BW2.0 BW1.0 BW2.1 BW1.1"),
    "bidirectional": ("F0.0 F3.1 BW3.1 BW0.0", "F2.1 F1.0 BW1.0 BW2.1"),
}


def problem(placement: str = "linear", unit: str = "ms", **times: object) -> Problem:
    times = {"forward": 2, "backward": 3, "weight": 1, "transfer": 1} | times
    return makers.problem(2, 2, placement=placement, time_unit=unit, times=times)


def timeline(one: Problem, *rows: str) -> Timeline:
    return simulate(one, schedule(*rows))


def trace_of(done: Timeline) -> dict[str, Any]:
    files = EXPORTERS["chrome-trace"].export(done)
    assert list(files) == [".trace.json"]
    trace = json.loads(files[".trace.json"])
    assert isinstance(trace, dict)
    return trace


def events(trace: dict[str, Any], *phases: str) -> list[Event]:
    return [event for event in trace["traceEvents"] if event["ph"] in phases]


def nanoseconds(time: float) -> int:
    """As Perfetto reads a time: what is below a nanosecond is cut off."""
    return int(time * 1000)


def assert_nothing_overlaps(trace: dict[str, Any]) -> None:
    """Boxes of one thread stand side by side; the trace format forbids crossing ones and Perfetto leaves them out."""
    by_thread: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events(trace, "X"):
        start = nanoseconds(event["ts"])
        by_thread[event["pid"], event["tid"]].append((start, start + nanoseconds(event["dur"])))
    for spans in by_thread.values():
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
            assert end <= start


@pytest.mark.parametrize("placement", ROWS)
def test_one_box_a_pass_with_the_timelines_times(placement: str) -> None:
    done = timeline(problem(placement), *ROWS[placement])
    trace = trace_of(done)
    boxes = {event["name"]: event for event in events(trace, "X")}
    assert set(boxes) == {str(p) for p in done.schedule.passes()}
    for p in done.schedule.passes():
        box = boxes[str(p)]
        assert box["ts"] == done.start(p) * done.problem.tick * 1000
        assert box["ts"] + box["dur"] == done.end(p) * done.problem.tick * 1000
        assert box["pid"] == done.problem.device(p)
        assert box["args"] == {"kind": p.kind, "stage": p.stage, "microbatch": p.microbatch}
    assert_nothing_overlaps(trace)


def test_frame_and_names() -> None:
    trace = trace_of(timeline(problem(), *ROWS["linear"]))
    assert trace["displayTimeUnit"] == "ms"
    assert trace["otherData"]["tool"] == "pipesched"
    assert trace["otherData"]["time"] == "times are real: the problem's unit is ms"
    metadata = [(e["pid"], e["name"], e["args"]) for e in events(trace, "M")]
    for device in range(2):
        assert (device, "process_name", {"name": f"Device {device}"}) in metadata
        assert (device, "process_sort_index", {"sort_index": device}) in metadata
        assert (device, "thread_name", {"name": "compute"}) in metadata
    named = {(e["pid"], e["tid"]) for e in events(trace, "M") if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in events(trace, "X", "s", "f")} <= named
    assert {e["ph"] for e in trace["traceEvents"]} == {"M", "X", "s", "f", "C"}


@pytest.mark.parametrize("placement", ROWS)
def test_arrows_pair_up_and_touch_their_boxes(placement: str) -> None:
    done = timeline(problem(placement), *ROWS[placement])
    trace = trace_of(done)
    ends: dict[int, dict[str, Event]] = defaultdict(dict)
    for event in events(trace, "s", "f"):
        assert event["ph"] not in ends[event["id"]], "an arrow has one tail and one head"
        ends[event["id"]][event["ph"]] = event

    def box_around(point: Event) -> Pass:
        thread = (point["pid"], point["tid"])
        inside = [
            event["name"]
            for event in events(trace, "X")
            if (event["pid"], event["tid"]) == thread and 0 <= point["ts"] - event["ts"] < event["dur"]
        ]
        assert len(inside) == 1
        return parse_pass(inside[0])

    found = set()
    for pair in ends.values():
        assert set(pair) == {"s", "f"}
        assert pair["s"]["ts"] <= pair["f"]["ts"]
        assert pair["f"]["bp"] == "e"
        found.add((box_around(pair["s"]), box_around(pair["f"])))
    one = done.problem
    expected = {
        (before, p)
        for p in done.schedule.passes()
        for before, _ in one.network.predecessors(p, done.schedule.pass_set)
        if one.device(before) != one.device(p)
    }
    assert found == expected
    assert len(ends) == len(expected)


def test_both_passes_of_a_block_are_seen() -> None:
    done = timeline(problem(overlapped=5), "F0.0 F0.1 BW0.0 BW0.1", "F1.0 F1.1&BW1.0 BW1.1")
    trace = trace_of(done)
    boxes = {event["name"]: event for event in events(trace, "X")}
    forward, backward = boxes["F1.1"], boxes["BW1.0"]
    assert (forward["ts"], forward["dur"]) == (backward["ts"], backward["dur"])
    assert forward["dur"] == 5000
    assert forward["tid"] != backward["tid"]
    assert boxes["BW1.1"]["tid"] == boxes["F1.0"]["tid"] == forward["tid"]
    names = {(e["tid"], e["args"]["name"]) for e in events(trace, "M") if e["name"] == "thread_name"}
    assert names == {(forward["tid"], "compute"), (backward["tid"], "compute (overlapped)")}
    assert_nothing_overlaps(trace)


@pytest.mark.parametrize(
    ("unit", "microseconds"),
    [("ns", Fraction(1, 1000)), ("us", 1), ("\u00b5s", 1), ("\u03bcs", 1), ("ms", 1000), ("s", 1_000_000)],
)
def test_known_time_units(unit: str, microseconds: Fraction) -> None:
    done = timeline(problem(unit=unit, forward=2, transfer=0), *ROWS["linear"])
    trace = trace_of(done)
    starts = {event["name"]: nanoseconds(event["ts"]) for event in events(trace, "X")}
    assert starts["F0.1"] == 2 * microseconds * 1000
    assert "times are real" in trace["otherData"]["time"]


@pytest.mark.parametrize("unit", ["", "fortnights"])
def test_another_unit_is_shown_as_milliseconds_and_says_so(unit: str) -> None:
    trace = trace_of(timeline(problem(unit=unit, forward=2), *ROWS["linear"]))
    assert next(e["ts"] for e in events(trace, "X") if e["name"] == "F0.1") == 2000
    assert trace["otherData"]["time"].startswith("1 unit is shown as 1 ms: ")
    assert unit in trace["otherData"]["time"]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_fractions_never_make_boxes_overlap(unit: str) -> None:
    """1.001 us is below 1001 ns in floats; 0.3 ns is below what a trace can say."""
    times = {"forward": "1.001", "backward": "0.29", "weight": "0.57", "fused": "0.3", "transfer": "0"}
    fine = problem(unit=unit, **{key: Decimal(number) for key, number in times.items()})
    trace = trace_of(timeline(fine, *ROWS["linear"]))
    assert_nothing_overlaps(trace)
    if unit == "us":
        assert {e["name"]: nanoseconds(e["ts"]) for e in events(trace, "X")}["F0.1"] == 1001


def test_streams_are_threads() -> None:
    """A forward whose middle runs on the ep stream: three boxes, the arrow leaves from the last."""
    parts = (TaskSpec(COMPUTE, 1), TaskSpec("ep", 2), TaskSpec(COMPUTE, 1))
    plain = problem()
    one = with_tasks(plain, {(F, 0): parts})
    done = timeline(one, *ROWS["linear"])
    trace = trace_of(done)
    boxes = {event["name"]: event for event in events(trace, "X")}
    names = {e["tid"]: e["args"]["name"] for e in events(trace, "M") if e["name"] == "thread_name" and e["pid"] == 0}
    assert [names[boxes[name]["tid"]] for name in ("F0.0", "F0.0/1", "F0.0/2")] == ["compute", "ep", "compute"]
    assert list(names.values()) == ["compute", "ep"]
    tail = next(e for e in events(trace, "s") if e["name"] == "activation")
    last = boxes["F0.0/2"]
    assert last["ts"] <= tail["ts"] < last["ts"] + last["dur"]
    assert_nothing_overlaps(trace)


def test_memory_is_a_counter_of_every_device_in_its_unit() -> None:
    memory = {"activation": 1.5, "static": [4, 0], "unit": "GB"}
    one = makers.problem(2, 2, time_unit="ms", times={"forward": 2, "backward": 3}, memory=memory)
    done = timeline(one, "F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")
    counters = events(trace_of(done), "C")
    assert {(one["name"], one["pid"]) for one in counters} == {("Memory (GB)", 0), ("Memory (GB)", 1)}
    first = [(one["ts"], one["args"]["held"]) for one in counters if one["pid"] == 0]
    # 2 ms a forward; the first backward of device 0 ends at 10, the second at 15.
    assert first == [(0, 5.5), (2000, 7.0), (10000, 5.5), (15000, 4.0)]
    assert max(one["args"]["held"] for one in counters if one["pid"] == 1) == 1.5
