"""Snapshots of torch's allocator (`torch.cuda.memory._dump_snapshot`): allocations, releases, and the peak.

They are pickles, of which only plain data is read: a pickle that names any class or function is refused unread.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pipesched.errors import BadInput
from runtime.traces.rank_events import RankEvents

_ENDINGS = (".pickle", ".pkl")
_TAKEN = {"alloc": 1, "free_completed": -1}
# What reading a file that is no pickle, a broken one, or one of something else raises.
_BROKEN = (OSError, pickle.UnpicklingError, EOFError, ValueError, LookupError, TypeError, AttributeError)
_KINETO_BASE = 10**12  # microseconds: traces of torch's profiler are read modulo this


class MemorySnapshot(NamedTuple):
    """A snapshot of one process.

    `events` are (microseconds of Unix time, bytes; negative: released), `peak` is in bytes.
    """

    path: Path
    events: tuple[tuple[int, int], ...]
    peak: int


class _PlainData(pickle.Unpickler):
    """An unpickler that accepts only numbers, texts, lists, dictionaries and tuples.

    So nothing in the file can run.
    """

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it refers to {pid!r} outside the file")


def is_snapshot(path: Path) -> bool:
    """Return True if a file is a pickle, by its ending."""
    return path.suffix.lower() in _ENDINGS


def read_snapshot(path: Path) -> MemorySnapshot:
    """Return the snapshot of the device with most events; `BadInput` says what is wrong with the file."""
    try:
        with path.open("rb") as file:
            document = _PlainData(file).load()
        return _of(path, document)
    except _BROKEN as error:
        raise BadInput(
            f"{path.name}: found no snapshot of torch's allocator ({error}); allowed: what "
            "`torch.cuda.memory._dump_snapshot` writes, plain data alone"
        ) from None


def _of(path: Path, document: dict[str, Any]) -> MemorySnapshot:
    traces = document["device_traces"]
    device = max(range(len(traces)), key=lambda at: len(traces[at]), default=0)
    allocated = sum(
        int(segment["allocated_size"]) for segment in document["segments"] if segment.get("device", device) == device
    )
    events = [
        (int(event.get("time_us", 0)), _TAKEN[event["action"]] * int(event["size"]))
        for event in (traces[device] if traces else ())
        if event["action"] in _TAKEN
    ]
    peak = allocated
    for _, size in reversed(events):  # the snapshot holds what is taken at its end, and what led there
        allocated -= size
        peak = max(peak, allocated)
    return MemorySnapshot(path, tuple(events), peak)


def with_snapshots(
    ranks: Sequence[RankEvents], snapshots: Sequence[MemorySnapshot], notes: list[str]
) -> list[RankEvents]:
    """Return the ranks with the memory of their snapshots, in the same order.

    Snapshots, ordered by the numbers in their files' names, belong to the ranks in ascending order; equal or missing
    numbers keep the given order. Remarks for the user are appended to `notes`. `BadInput` unless there are no
    snapshots, or as many as traces.
    """
    if not snapshots:
        return list(ranks)
    if len(snapshots) != len(ranks):
        raise BadInput(
            f"found {len(snapshots)} memory snapshots and {len(ranks)} traces; allowed: one snapshot a trace"
        )
    numbers = [_number(one.path) for one in snapshots]
    order = sorted(range(len(snapshots)), key=lambda at: numbers[at])
    places = sorted(range(len(ranks)), key=lambda at: ranks[at].rank)
    found = list(ranks)
    for at, place in zip(order, places, strict=True):
        found[place] = _joined(ranks[place], snapshots[at], notes)
    return found


def _number(path: Path) -> int:
    """Return the rank in a file's name: the number after `rank`, else its last number, else 0."""
    match = re.search(r"rank\D?(\d+)", path.stem) or re.search(r"(\d+)\D*$", path.stem)
    return int(match[1]) if match else 0


def _joined(rank: RankEvents, snapshot: MemorySnapshot, notes: list[str]) -> RankEvents:
    """Return the rank with the snapshot's events on the trace's clock.

    With its peak alone if no event is within the passes. In that case it adds a line to `notes`.
    """
    first = min((one.start for one in rank.annotations), default=0.0)
    last = max((one.end for one in rank.annotations), default=0.0)
    for modulus in (_KINETO_BASE, 10**18):
        memory = sorted((time % modulus / 1e6, size) for time, size in snapshot.events)
        if any(first <= time <= last for time, _ in memory):
            return replace(rank, memory=memory, peak=snapshot.peak)
    notes.append(f"{snapshot.path.name}: no event within the passes of rank {rank.rank}: its peak alone")
    return replace(rank, peak=snapshot.peak)
