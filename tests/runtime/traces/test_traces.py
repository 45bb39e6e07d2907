"""Traces of other programs: what each format says of a run is the run, and what it does not say is said."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.problem_file import problem_from, read_problem
from pipesched.measurement.comparison import compared, executed
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.traces.catalogue import TRACES, Hints, read_traces
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace
from runtime.traces.problem_of_trace import measured_run, trace_text
from runtime.traces.rank_events import RankEvents, Span
from solver.construction.list_scheduling import sequential
from tests.support.makers import problem, random_order
from tests.support.traces import megatron_log, write_kineto, write_nsys, write_primus

TIMES = {"forward": [4, 6, 5, 8], "backward": [5, 6, 7, 9], "weight": [2, 3, 3, 4], "transfer": 1}


def run(**more: Any) -> Timeline:
    times = {key: value[:2] * 2 if isinstance(value, list) else value for key, value in TIMES.items()}
    one = problem(2, 6, times=times, **({"placement": "v-shape"} | more))
    return simulate(one, random_order(one, Random(3)))


def linear(name: str, devices: int = 4) -> Timeline:
    one = problem(devices, 8, times=TIMES)
    return simulate(one, HEURISTICS[name].order(one))


def read(paths: list[Path]) -> tuple[PipelineTrace, Problem]:
    trace = read_traces(paths)
    assert isinstance(trace, PipelineTrace)
    return trace, problem_from(read_yaml(trace_text(trace, "traced", None, "makespan"), "t"), "t", "traced")


@pytest.mark.parametrize("write", [write_kineto, write_nsys])
@pytest.mark.parametrize("timeline", [linear("zb-h1"), linear("1f1b"), run()], ids=["zb-h1", "1f1b", "v"])
def test_a_run_is_read_back(write: Any, timeline: Timeline, tmp_path: Path) -> None:
    """Host times lie far before the kernels, so only launches tell whose a kernel is."""
    trace, found = read(write(timeline, tmp_path))
    one = timeline.problem
    assert (trace.stage_device, trace.microbatches) == (one.placement.stage_device, one.microbatches)
    assert len(trace.steps) == 2 and not [note for note in trace.notes if "left out" in note]
    for (kind, stage), samples in trace.times.items():
        p = next(p for p in timeline.schedule.passes() if (p.kind, p.stage) == (kind, stage))
        assert samples.median == pytest.approx(one.in_units(one.duration(p)) / 1000)
    measured = measured_run(trace, found)
    assert measured is not None
    assert executed(measured).orders == timeline.schedule.orders
    said = compared(measured, found)
    assert said.measured == pytest.approx(measure(timeline).makespan_ticks / 1000)
    assert said.replayed == pytest.approx(said.measured, rel=1e-4)
    assert all(samples.median >= 0.001 - 1e-9 for samples in trace.transfers.values())


def test_what_passes_take_is_read_from_memory_events(tmp_path: Path) -> None:
    trace, found = read(write_kineto(linear("zb-h1"), tmp_path))
    assert trace.peaks == (64 << 20,) * 4
    assert {stage.activation * found.resolution for stage in found.stages} == {4}
    text = trace_text(trace, "t", "16", "makespan")
    assert "capacity: 16" in text and "activation: [4" in text and "freed_by_backward: [1" in text


def test_transfers_are_their_fastest_quartile(tmp_path: Path) -> None:
    """Some receivers wait for something else: the median would count that as transfer."""
    paths = write_kineto(linear("1f1b"), tmp_path)
    _, found = read(paths)
    assert [stage.transfer for stage in found.stages][:3] == [round(1 / float(found.tick))] * 3


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("chunks", [1, 2])
def test_primus_ranks_are_read(named: bool, chunks: int, tmp_path: Path) -> None:
    times = {"forward": 2, "backward": 3, "transfer": 1}
    placed = {"placement": "interleaved", "chunks": 2} if chunks == 2 else {}
    one = problem(4, 8, times=times, **placed)
    timeline = simulate(one, HEURISTICS["interleaved-1f1b" if chunks == 2 else "1f1b"].order(one))
    write_primus(timeline, tmp_path, named)
    trace = read_traces([tmp_path])  # its configuration beside the ranks is no trace
    assert isinstance(trace, PipelineTrace)
    assert trace.stage_device == one.placement.stage_device
    assert trace.peaks == (round(12.5 * 1024**3),) * 4
    ran = [[p.of for p in row] for row in trace.steps[1]]
    assert ran == [list(timeline.schedule.passes_on(device)) for device in range(4)]
    assert [x.median for (kind, _), x in trace.times.items() if kind is BW] == pytest.approx([0.003] * 4 * chunks)
    assert any("clock of its own" in note for note in trace.notes)


def test_megatron_timers_are_totals_of_a_step(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(megatron_log({0: 80.0, 1: 80.0, 2: 160.0, 3: 160.0}, {0: 160.0, 1: 160.0, 2: 320.0, 3: 320.0}))
    trace = read_traces([log], Hints(devices=2, microbatches=8))
    assert isinstance(trace, PipelineTrace)
    assert [trace.times[F, stage].median for stage in (0, 1)] == pytest.approx([0.010, 0.020])
    assert [trace.times[BW, stage].median for stage in (0, 1)] == pytest.approx([0.020, 0.040])
    assert not trace.steps and any("totals" in note for note in trace.notes)
    with pytest.raises(BadInput, match="--microbatches"):
        read_traces([log])
    with pytest.raises(BadInput, match="a multiple of the 3 devices"):
        read_traces([log], Hints(devices=3, microbatches=8))


@pytest.mark.parametrize(
    ("lines", "forwards", "assumed"),
    [
        (
            "time (ms) | forward-compute: 80.0 | backward-compute: 160.0 | optimizer: 3.0\n",
            [10, 10],
            "the time printed",
        ),
        (
            "    (min, max) time across ranks (ms):\n    forward-compute ......: (40.00, 80.00)\n"
            "    backward-compute .....: (100.00, 160.00)\n",
            [5, 10],
            "every other the shortest",
        ),
        (
            "max time across ranks (ms):\n    forward-compute ......: 80.00\n    backward-compute .....: 160.00\n",
            [10, 10],
            "the time printed",
        ),
    ],
)
def test_megatron_timers_that_are_not_of_each_rank(
    tmp_path: Path, lines: str, forwards: list[int], assumed: str
) -> None:
    log = tmp_path / "train.log"
    log.write_text(lines)
    with pytest.raises(BadInput, match="--devices N"):
        read_traces([log], Hints(microbatches=8))
    log.write_text("  pipeline_model_parallel_size .... 2\nsetting number of micro-batches to constant 8\n" + lines)
    trace = read_traces([log])
    assert isinstance(trace, PipelineTrace)
    assert [1000 * trace.times[F, stage].median for stage in (0, 1)] == pytest.approx(forwards)
    assert 1000 * trace.times[BW, 1].median == pytest.approx(20)
    assert any(note.startswith("assumed: ") and assumed in note for note in trace.notes)
    assert any(note.startswith("used: ") and "forward-compute" in note for note in trace.notes)


def write_blocks(path: Path) -> None:
    """Two layers: attention computes while tokens are dispatched; what a dispatch waits for is not its work."""
    events = list[dict[str, Any]]()

    def add(category: str, name: str, start: int, duration: int, **args: int) -> None:
        events.append({"cat": category, "name": name, "ts": start, "dur": duration, "args": args})

    at = {7: 0, 27: 0}
    blocks = [
        ("attn(F)", 7, 900),
        ("dispatch(F)", 27, 400),
        ("combine(B)", 27, 300),
        ("attn(B)", 7, 1800),
        ("attn(W)", 7, 500),
    ]
    for number, (name, stream, length) in enumerate(blocks * 2):
        add("user_annotation", name, 40 * number, 30)
        parts = (
            [("cast", 20), ("notify_dispatch", 1000), ("tokens", length)] if stream == 27 else [("a", length // 2)] * 2
        )
        for place, (kernel, long) in enumerate(parts):
            add("cuda_runtime", "launch", 40 * number + 3 * place + 1, 1, correlation=10 * number + place)
            add("kernel", kernel, 5000 + at[stream], long, correlation=10 * number + place, stream=stream)
            at[stream] += long
        at[stream] += 50
    add("user_annotation", "ProfilerStep#1", 0, 10**6)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def test_annotated_blocks_become_tasks_without_the_kernels_that_wait(tmp_path: Path) -> None:
    write_blocks(tmp_path / "train.json")
    trace = read_traces([tmp_path / "train.json"])
    assert isinstance(trace, BlockTrace)
    found = {
        block.name: (block.kind, block.stream, round(1e6 * block.seconds))
        for block in trace.blocks
        if block.kind is not B
    }
    assert found == {
        "attn-0": (F, "compute", 900), "attn-1": (F, "compute", 900),
        "dispatch-0": (F, "comm", 400), "dispatch-1": (F, "comm", 400),
        "attn-w-0": (W, "compute", 500), "attn-w-1": (W, "compute", 500),
    }  # fmt: skip
    assert [block.name for block in trace.blocks if block.kind is B] == ["combine-1", "attn-1", "combine-0", "attn-0"]
    assert main(["profile", "--from-trace", str(tmp_path / "train.json"), "-o", str(tmp_path / "pair.yaml")]) == 0
    one = read_problem(tmp_path / "pair.yaml")
    assert (one.devices, one.microbatches, one.streams) == (1, 2, ("compute", "comm"))


def test_steps_that_are_not_whole_and_replicas_are_left_out(tmp_path: Path) -> None:
    timeline = linear("1f1b")
    paths = write_kineto(timeline, tmp_path, steps=3)
    for path in paths:  # the recording ends within the third step
        document = json.loads(path.read_text())
        document["traceEvents"] = document["traceEvents"][:-24]
        path.write_text(json.dumps(document))
    twin = tmp_path / "rank9.json"
    twin.write_text(paths[0].read_text().replace('"rank": 0', '"rank": 9'))
    trace, _ = read([*paths, twin])
    assert len(trace.steps) == 2
    assert any("1 of 3 steps are not whole" in note for note in trace.notes)
    assert any("data parallel" in note for note in trace.notes)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", '{"traceEvents": [], "schemaVersion": 1}', "found neither passes"),
        ("a.json", '{"schemaVersion": 1, "traceEvents": [{"cat": "kernel"', "not a whole trace"),
        ("a.txt", "hello", "found no trace of a known format"),
        ("a.json", '{"1": {"fwd_start": [0], "fwd_end": []}}', "not a whole pipeline trace"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_line(name: str, text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(BadInput, match=reason) as caught:
        read_traces([path])
    assert len(caught.value.mistakes) == 1 and name in str(caught.value)


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    paths = write_kineto(linear("1f1b"), tmp_path)
    with pytest.raises(BadInput, match="found no pass of stage 1"):
        read_traces([paths[0], *paths[2:]])
    with pytest.raises(BadInput, match="there is no such file"):
        read_traces([tmp_path / "none.json"])
    assert {one.name for one in TRACES} == {"kineto", "megatron-timers", "nsys", "primus"}


def test_one_command_says_measured_this_order_and_the_optimum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = problem(4, 8, times=TIMES)
    timeline = simulate(one, sequential(one))
    paths = list(map(str, write_kineto(timeline, tmp_path)))
    assert main(["compare", "--measured", *paths, "--time-limit", "5", "--workers", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (row,) = said["rows"]
    assert row["measured"] == pytest.approx(measure(timeline).makespan_ticks / 1000)
    assert said["optimum"]["status"] == "optimal" and said["optimum"]["certificate"]
    assert said["optimum"]["value"] < 1000 * row["measured"]
    assert main(["compare", "--measured", *paths, "--time-limit", "5", "--workers", "1"]) == 0
    text = capsys.readouterr().out
    assert "this order with these times" in text and "best order with these times (optimal)" in text
    assert main(["profile", "--from-trace", *paths, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "kineto" and document["run"][0]["steps"] == 2


def test_on_the_host_a_pass_that_did_nothing_takes_no_time() -> None:
    """The input backward of torch's stage 0 waits for a gradient, and has no operation: its W does the work."""
    spans = [Span("PP:0F0", 0, 2), Span("PP:0I0", 2, 12), Span("PP:0W0", 12, 15)]
    operations = [Span("aten::mm", 0.5, 2), Span("aten::mm", 12.5, 15)]
    for order in (spans, [*reversed(spans)]):
        ran = {str(one.of): (one.start, one.end) for one in RankEvents(0, order, operations=operations).passes()}
        assert ran == {"F0.0": (0.5, 2), "B0.0": (12, 12), "W0.0": (12.5, 15)}
    # Without any operation recorded there is nothing better than the annotation.
    assert [(one.start, one.end) for one in RankEvents(0, spans).passes()] == [(0, 2), (2, 12), (12, 15)]
