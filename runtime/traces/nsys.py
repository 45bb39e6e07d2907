"""SQLite exports of Nsight Systems (`nsys export --type sqlite`), one for each rank, with ranges annotated by torch."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pipesched.errors import BadInput
from runtime.traces.annotated import read_ranks
from runtime.traces.catalogue import TRACES, Hints, TraceFormat
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace
from runtime.traces.rank_events import Kernel, RankEvents, Span

_NS = 1e9
_RANGES = """
    SELECT COALESCE(n.text, s.value), n.start, n.end FROM NVTX_EVENTS n
    LEFT JOIN StringIds s ON s.id = n.textId WHERE n.end IS NOT NULL
"""
_KERNELS = """
    SELECT s.value, k.start, k.end, k.streamId, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
    LEFT JOIN StringIds s ON s.id = k.shortName
"""


def _recognises(path: Path) -> bool:
    with path.open("rb") as file:
        if not file.read(16).startswith(b"SQLite format 3"):
            return False
    try:
        return "NVTX_EVENTS" in _tables(path)
    except sqlite3.Error:
        return False


def _tables(path: Path) -> set[str]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        return {name for (name,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _read(paths: Sequence[Path], hints: Hints) -> PipelineTrace | BlockTrace:
    return read_ranks("nsys", [_events(path, at) for at, path in enumerate(paths)], hints)


def _events(path: Path, place: int) -> RankEvents:
    """Return ranges and kernels of a file.

    Without kernels, the ranges alone. `place`, its index among the files, is the rank. `BadInput` for a file that is no
    whole export.
    """
    try:
        tables = _tables(path)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            ranges = [Span(str(name), start / _NS, end / _NS) for name, start, end in base.execute(_RANGES)]
            kernels = []
            if "CUPTI_ACTIVITY_KIND_KERNEL" in tables:
                kernels = [
                    Kernel(str(name), start / _NS, end / _NS, stream, launched / _NS)
                    for name, start, end, stream, launched in base.execute(_KERNELS)
                ]
    except sqlite3.Error as error:
        raise BadInput(f"{path.name}: not a whole export of Nsight Systems: {error}") from None
    return RankEvents(place, sorted(ranges, key=lambda one: one.start), sorted(kernels, key=lambda one: one.launched))


TRACES.register(TraceFormat("nsys", "SQLite exports of Nsight Systems, one a rank", _recognises, _read))
