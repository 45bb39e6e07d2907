"""Measured traces: what is written is read back, and what is wrong in a file is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipesched.errors import BadInput
from pipesched.measurement.trace import Measured, MeasuredPass, Step, read_measured, to_text
from pipesched.problem.passes import BW, F, Pass
from pipesched.simulation.simulator import simulate
from plots.measured import render_both
from runtime.running.torch_timing import as_run, predicted
from tests.support.columns import costs_of
from tests.support.makers import problem, schedule

ONE = problem(2, 2, time_unit="ms", times={"forward": 2, "backward": 4, "transfer": 1})
ORDER = schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")


def step(stretch: float) -> Step:
    timeline = simulate(ONE, ORDER)
    return tuple(
        tuple(MeasuredPass(p, stretch * timeline.start(p), stretch * timeline.end(p)) for p in ORDER.passes_on(device))
        for device in range(2)
    )


MEASURED = Measured(
    ONE, "by-hand", (step(0.002), step(0.001), step(0.003)), "none", 0.001, {"device": "cpu"}, {"torch": "2.13.0"}
)


def test_a_trace_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(to_text(MEASURED))
    assert read_measured(path) == MEASURED


def test_what_is_read_off_a_trace() -> None:
    ticks = max(simulate(ONE, ORDER).end(p) for p in ORDER.passes())
    assert MEASURED.makespans == pytest.approx((0.002 * ticks, 0.001 * ticks, 0.003 * ticks))
    assert MEASURED.best == step(0.001)
    assert MEASURED.seconds[Pass(F, 0, 1)] == pytest.approx(0.002 * ONE.duration(Pass(F, 0, 1)))
    assert MEASURED.seconds[Pass(BW, 1, 0)] == pytest.approx(0.002 * ONE.duration(Pass(BW, 1, 0)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "not a measured trace"),
        ({"format_version": 99}, "format_version: found 99"),
        ({"steps": []}, "steps: found"),
        ({"steps": [[[]]]}, "allowed: one list of passes for each of 2 devices"),
        ({"steps": [[[["F0.0", 0]], []]]}, "allowed: a pass, its start and its end"),
        ({"steps": [[[["F1.0", 0, 1]], []]]}, "found F1.0 on device 0"),
        ({"steps": [[[["F9.0", 0, 1]], []]]}, "found F9.0 on device 0"),
        ({"steps": [[[["F0.0", 1, 0.5]], []]]}, "end before the start"),
        ({"steps": [[[["F0.0", 0, "x"]], []]]}, "allowed: seconds"),
        ({"steps": [[[["F0.0", 0, 1]], []], [[["F0.1", 0, 1]], []]]}, "steps.1: found other passes"),
        ({"seconds_per_unit": -1}, "seconds_per_unit"),
    ],
)
def test_a_broken_trace_is_refused_with_the_reason(change: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(json.loads(to_text(MEASURED)) | change))
    with pytest.raises(BadInput, match=said.replace(".", r"\.")) as caught:
        read_measured(path)
    assert str(path) in str(caught.value)


def test_the_picture_holds_both_charts() -> None:
    both = render_both(predicted(ONE, ORDER, "store"), MEASURED, "by hand", 0.001)
    assert both.startswith(b"\x89PNG")
    assert both != render_both(predicted(ONE, ORDER, "store"), MEASURED, "by hand", 0.002)


def test_the_rules_of_the_runtime_change_only_what_they_say() -> None:
    split = problem(3, 2, times={"forward": 3, "backward": 5, "weight": 2, "fused": 6, "transfer": 1, "overlapped": 7})
    stored, autograd = costs_of(as_run(split, "store")), costs_of(as_run(split, "autograd"))
    assert (stored.backward, stored.weight, stored.overlapped) == ((5, 5, 5), (2, 2, 2), None)
    assert (autograd.backward, autograd.weight, autograd.fused) == ((0, 5, 5), (7, 2, 2), (6, 6, 6))
    assert costs_of(as_run(split, "store", transfers=False)).transfer == (0, 0, 0)
    both_ways = problem(2, 2, placement="bidirectional", times={"forward": 3, "backward": 5, "weight": 2})
    assert costs_of(as_run(both_ways, "autograd")).backward == (0, 5, 0, 5)
    assert costs_of(as_run(ONE, "autograd")) == costs_of(ONE)  # a backward that is never split has no such rule
