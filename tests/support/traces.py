"""Traces of a timeline as other programs would have written them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.schedule.timeline import Timeline

LETTER = {F: "F", B: "I", W: "W", BW: "B"}
# Microseconds in a tick of the timeline, and from one step to the next.
TICK, STEP = 1000, 10**7


def kernels(timeline: Timeline, device: int, steps: int) -> Iterator[tuple[Pass, int, int]]:
    """Yield a device's passes with start and end in microseconds, step after step."""
    for step in range(steps):
        for p in timeline.schedule.passes_on(device):
            yield p, step * STEP + timeline.start(p) * TICK, step * STEP + timeline.end(p) * TICK


def write_kineto(timeline: Timeline, folder: Path, steps: int = 2) -> list[Path]:
    """Write a file of torch's profiler for each rank; return their paths.

    Annotations and memory events are where the host launches a pass, long before its two kernels run.
    """
    paths = []
    for device in range(timeline.problem.devices):
        events: list[dict[str, Any]] = []
        host = 0
        for number, (p, start, end) in enumerate(kernels(timeline, device, steps)):
            name = f"PP:{p.stage}{LETTER[p.kind]}{p.microbatch}"
            host = max(host + 10, start // STEP * STEP)
            events += [
                _event("user_annotation", name, host, 8),
                _event("cuda_runtime", "cudaLaunchKernel", host + 1, 1, correlation=2 * number),
                _event("kernel", "gemm", start, (end - start) // 2, correlation=2 * number, stream=7),
                _event("cuda_runtime", "cudaLaunchKernel", host + 5, 1, correlation=2 * number + 1),
                _event("kernel", "gemm", (start + end) // 2, end - (start + end) // 2, correlation=2 * number + 1, stream=7),
                _memory(host + 2, {F: 4, B: -1, W: -3, BW: -4}[p.kind] << 20),
            ]  # fmt: skip
        document = {
            "schemaVersion": 1,
            "distributedInfo": {"backend": "nccl", "rank": device, "world_size": timeline.problem.devices},
            "baseTimeNanoseconds": 1_700_000_000_000_000_000,
            "traceEvents": events,
        }
        paths.append(folder / f"rank{device}.json")
        paths[-1].write_text(json.dumps(document))
    return paths


def _event(kind: str, name: str, start: int, length: int, **args: int) -> dict[str, Any]:
    return {"ph": "X", "cat": kind, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": args}


def _memory(at: int, size: int) -> dict[str, Any]:
    args = {"Bytes": size, "Total Allocated": 64 << 20, "Device Type": 1}
    return {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "ts": at, "args": args}


def write_nsys(timeline: Timeline, folder: Path, steps: int = 2) -> list[Path]:
    """Write the tables of an export of Nsight Systems for each rank, with the columns that are read; return their
    paths."""
    paths = []
    for device in range(timeline.problem.devices):
        paths.append(folder / f"rank{device}.sqlite")
        with closing(sqlite3.connect(paths[-1])) as base:
            base.executescript(
                "CREATE TABLE StringIds (id INTEGER, value TEXT);"
                "CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, textId INTEGER);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, correlationId INTEGER);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL"
                " (start INTEGER, end INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER);"
                "INSERT INTO StringIds VALUES (0, 'gemm');"
            )
            host = 0
            for number, (p, start, end) in enumerate(kernels(timeline, device, steps)):
                host = max(host + 10, start // STEP * STEP)
                name = f"PP:{p.stage}{LETTER[p.kind]}{p.microbatch}"
                text = (None, number + 1) if number % 2 else (name, None)
                base.execute("INSERT INTO StringIds VALUES (?, ?)", (number + 1, name))
                base.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?)", (1000 * host, 1000 * (host + 8), *text))
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?)",
                    (1000 * host + 1, 1000 * host + 2, number),
                )
                base.execute(
                    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 7, ?, 0)", (1000 * start, 1000 * end, number)
                )
            base.commit()
    return paths


def write_primus(timeline: Timeline, folder: Path, named: bool, steps: int = 2) -> list[Path]:
    """Write Primus' files of an interleaved or linear placement; return their paths.

    With `named` each pass has its chunk and micro-batch.
    """
    devices = timeline.problem.devices
    chunks = timeline.problem.placement.stages // devices
    (folder / "config.json").write_text(json.dumps({"pp_size": devices, "vp_size": chunks}))
    paths = []
    for device in range(devices):
        document = {}
        for step in range(1, steps + 1):
            events: dict[str, Any] = {"total": 1.0, "memory": 12.5}
            for name, kinds in (("fwd", (F,)), ("bwd", (B, BW)), ("wgrad", (W,))):
                own = [p for p in timeline.schedule.passes_on(device) if p.kind in kinds]
                events[f"{name}_start"] = [float(timeline.start(p)) for p in own]
                events[f"{name}_end"] = [float(timeline.end(p)) for p in own]
                events[f"{name}_minibatch"] = [p.microbatch for p in own] if named else []
                events[f"{name}_chunk"] = [p.stage // devices for p in own] if named else []
            document[str(step)] = events
        paths.append(folder / f"pp_rank_{device}.json")
        paths[-1].write_text(json.dumps(document, indent=2))
    return paths


def megatron_log(forward: Mapping[int, float], backward: Mapping[int, float], iterations: int = 3) -> str:
    """Return a log of Megatron's timers, given the milliseconds of a step by rank."""
    lines = []
    for iteration in range(iterations):
        lines += [f" iteration {iteration}/ 10 | elapsed time per iteration (ms): 99.0 |", "times across ranks (ms):"]
        for name, times in (("forward-compute", forward), ("backward-compute", backward), ("forward-recv", forward)):
            lines.append(f"  {name}:")
            lines += [f"     rank {rank:2d}: {time + iteration - 1:.2f}" for rank, time in times.items()]
    return "\n".join(lines) + "\n"
