"""Chrome traces of torch's profiler (Kineto), one for each rank: torch's pipeline runtime, torchtitan, or blocks."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from runtime.traces.annotated import read_ranks
from runtime.traces.catalogue import TRACES, Hints, TraceFormat
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace
from runtime.traces.rank_events import Kernel, RankEvents, Span

_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
# Names of messages, which are no work of a pass.
_MESSAGES = ("c10d::", "gloo:", "nccl:", "record_param_comms")


def _recognises(path: Path) -> bool:
    if path.suffix not in (".json", ".gz"):
        return False
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            head = file.read(65536)
    except (OSError, UnicodeDecodeError):
        return False
    return "schemaVersion" in head or '"traceEvents"' in head


def _read(paths: Sequence[Path], hints: Hints) -> PipelineTrace | BlockTrace:
    return read_ranks("kineto", [_events(path, at) for at, path in enumerate(paths)], hints)


def _events(path: Path, place: int) -> RankEvents:
    """Return the events of a file, of rank `place` unless it names its rank; seconds of the clock that the files share.

    `BadInput` if the file is not whole.
    """
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            document = json.load(file)
        base = int(document.get("baseTimeNanoseconds", 0)) // 1000 % 10**12 / 1e6
        events = document["traceEvents"]
        return _of(events, base, int((document.get("distributedInfo") or {}).get("rank", place)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path.name}: not a whole trace of torch's profiler: {type(error).__name__} {error}") from None


def _of(events: Sequence[dict[str, Any]], base: float, rank: int) -> RankEvents:
    def span(event: dict[str, Any]) -> Span:
        start = base + float(event["ts"]) / 1e6
        return Span(str(event["name"]), start, start + float(event["dur"]) / 1e6)

    launches: dict[int, float] = {}
    gpu, annotations, operations, memory = [], [], [], []
    for event in events:
        kind, args = event.get("cat"), event.get("args") or {}
        if kind in ("cuda_runtime", "cuda_driver", "hip_runtime") and "correlation" in args:
            launches[args["correlation"]] = base + float(event["ts"]) / 1e6
        elif kind in _ON_GPU:
            gpu.append(event)
        elif kind == "user_annotation":
            annotations.append(span(event))
        elif kind == "cpu_op" and not str(event["name"]).startswith(_MESSAGES):
            operations.append(span(event))
        elif event.get("name") == "[memory]":
            memory.append(event)
    kernels = [
        Kernel(*span(event), int(event["args"]["stream"]), launches[event["args"]["correlation"]])
        for event in gpu
        if event["args"].get("correlation") in launches
    ]
    on_gpu = [event for event in memory if event["args"].get("Device Type") == 1]
    counted = on_gpu or ([] if gpu else memory)
    totals = [int(event["args"].get("Total Allocated", 0)) for event in counted]
    return RankEvents(
        rank,
        sorted(annotations, key=lambda one: one.start),
        sorted(kernels, key=lambda one: one.launched),
        sorted(operations, key=lambda one: one.start),
        sorted((base + float(event["ts"]) / 1e6, int(event["args"]["Bytes"])) for event in counted),
        max(totals, default=None),
    )


TRACES.register(
    TraceFormat("kineto", "Chrome traces of torch's profiler, one a rank, .json or .json.gz", _recognises, _read, True)
)
