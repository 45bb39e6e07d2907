"""Memory of passes and peaks from snapshots of torch's allocator, read without running anything that they hold."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.problem.passes import B, F, W
from pipesched.simulation.simulator import simulate
from runtime.traces.catalogue import read_traces
from runtime.traces.memory_snapshot import read_snapshot
from runtime.traces.pipeline_trace import PipelineTrace
from tests.support.makers import problem
from tests.support.traces import write_kineto, write_primus

BASE = 1_700_000_000_000_000  # microseconds: the clock of write_kineto
MIB = 1 << 20


def event(action: str, size: int, at: int) -> dict[str, Any]:
    return {"action": action, "addr": 1, "size": size, "stream": 0, "time_us": at, "frames": []}


def write_snapshot(path: Path, events: list[dict[str, Any]], held: int) -> Path:
    document = {
        "segments": [{"device": 0, "address": 1, "total_size": 64 * MIB, "allocated_size": held, "blocks": []}],
        "device_traces": [events, []],
        "allocator_settings": {"expandable_segments": False},
    }
    path.write_bytes(pickle.dumps(document))
    return path


def traces(folder: Path) -> list[Path]:
    """A run whose profiler recorded no memory, and beside it what the allocator did: F takes 6 MiB + its device."""
    one = problem(2, 4, times={"forward": 4, "backward": 5, "weight": 2, "transfer": 1})
    paths = write_kineto(simulate(one, HEURISTICS["zb-h1"].order(one)), folder)
    for device, path in enumerate(paths):
        document = json.loads(path.read_text())
        document["traceEvents"] = [e for e in document["traceEvents"] if e["name"] != "[memory]"]
        path.write_text(json.dumps(document))
        events = [event("segment_alloc", 64 * MIB, BASE)]
        for said in document["traceEvents"]:
            if said["cat"] != "user_annotation":
                continue
            kind = said["name"].removeprefix("PP:").strip("0123456789")
            inside = BASE + said["ts"] + 3
            taken = (6 + device) * MIB
            match kind:
                case "F":
                    events += [
                        event("alloc", taken + MIB, inside),
                        event("free_requested", MIB, inside),
                        event("free_completed", MIB, inside),
                    ]
                case "I":
                    events.append(event("free_completed", 2 * MIB, inside))
                case "W":
                    events.append(event("free_completed", taken - 2 * MIB, inside))
        write_snapshot(folder / f"rank{device}_memory_snapshot.pickle", events, 10 * MIB)
    return paths


def test_passes_and_peaks_come_from_the_snapshots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = traces(tmp_path)
    trace = read_traces([tmp_path])
    assert isinstance(trace, PipelineTrace)
    for stage in (0, 1):
        assert trace.memory[F, stage].median == (6 + stage) * MIB
        assert trace.memory[B, stage].median == -2 * MIB
        assert trace.memory[W, stage].median == -(4 + stage) * MIB
    # 10 MiB at the end; of zb-h1 device 0 holds two micro-batches at a time, device 1 one or two, and a MiB within F.
    assert trace.peaks is not None and trace.peaks[0] >= (10 + 2 * 6) * MIB and trace.peaks[0] % MIB == 0
    assert not any("no memory" in note for note in trace.notes)
    assert main(["profile", "--from-trace", str(tmp_path), "--capacity", "20", "-o", str(tmp_path / "found.yaml")]) == 0
    text = (tmp_path / "found.yaml").read_text()
    assert "activation: [6.000, 7.000]" in text and "freed_by_backward: [2.000, 2.000]" in text
    capsys.readouterr()
    (tmp_path / "rank1_memory_snapshot.pickle").unlink()
    with pytest.raises(BadInput, match="found 1 memory snapshots and 2 traces"):
        read_traces([*paths, tmp_path / "rank0_memory_snapshot.pickle"])


def test_the_peak_is_found_backwards_from_what_is_held_at_the_end(tmp_path: Path) -> None:
    """The record begins somewhere within the run: what was held before it is known from the end alone."""
    events = [
        event("alloc", 5, 1),
        event("alloc", 7, 2),
        event("free_completed", 5, 3),
        event("free_completed", 3, 4),
        event("alloc", 1, 5),
    ]
    found = read_snapshot(write_snapshot(tmp_path / "a.pickle", events, 20))
    assert found.events == ((1, 5), (2, 7), (3, -5), (4, -3), (5, 1))
    assert found.peak == 20 - 1 + 3 + 5


def test_clocks_that_do_not_meet_leave_the_peaks(tmp_path: Path) -> None:
    traces(tmp_path)
    for rank in (0, 1):
        write_snapshot(tmp_path / f"rank{rank}_memory_snapshot.pickle", [event("alloc", 5, BASE + 10**11)], 9 + rank)
    trace = read_traces([tmp_path])
    assert isinstance(trace, PipelineTrace)
    assert trace.peaks == (9, 10) and not trace.memory
    assert sum("its peak alone" in note for note in trace.notes) == 2


class Harmful:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch harmed",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps({"segments": Harmful(), "device_traces": []}),
        b"",
        b"hello",
        pickle.dumps([1]),
        pickle.dumps({"segments": []}),
    ],
)
def test_what_is_no_snapshot_is_refused_and_nothing_in_it_runs(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rank0.pickle"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"rank0\.pickle: found no snapshot of torch's allocator"):
        read_snapshot(path)
    assert not (tmp_path / "harmed").exists()


def test_snapshots_belong_to_traces_of_the_profiler(tmp_path: Path) -> None:
    one = problem(2, 4, times={"forward": 4, "backward": 5})
    write_primus(simulate(one, HEURISTICS["1f1b"].order(one)), tmp_path, True)
    write_snapshot(tmp_path / "rank0.pickle", [], 1)
    with pytest.raises(BadInput, match="found a memory snapshot beside primus"):
        read_traces([tmp_path])
