"""Pipeline traces of AMD's Primus (`--dump_pp_data`): pp_rank_N.json of every rank, with config.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipesched.errors import BadInput
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from runtime.traces.catalogue import TRACES, Hints, TraceFormat, head_of
from runtime.traces.pipeline_trace import BlockTrace, PipelineTrace, RanPass, assembled

_GIB = 1024**3


def _recognises(path: Path) -> bool:
    return path.suffix == ".json" and '"fwd_start"' in head_of(path)


def _read(paths: Sequence[Path], hints: Hints) -> PipelineTrace | BlockTrace:
    del hints
    ranks = sorted(paths, key=lambda path: int("".join(c for c in path.stem if c.isdigit()) or 0))
    documents = [_document(path) for path in ranks]
    chunks = _chunks(ranks[0], documents)
    notes = ["each rank has a clock of its own, taken to begin together"]
    rows: list[list[RanPass]] = []
    peaks = []
    try:
        for rank, document in enumerate(documents):
            rows.append([])
            for number, step in enumerate(document.values()):
                rows[-1] += sorted(_passes(step, rank, len(ranks), chunks, number), key=lambda one: one.start)
            peaks.append(int(max(float(step.get("memory") or 0) for step in document.values()) * _GIB))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadInput(f"{ranks[len(rows) - 1].name}: not a whole pipeline trace: {error!r}") from None
    return assembled("primus", rows, notes, peaks if all(peaks) else None)


def _document(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path.name}: cannot be read: {error}") from None
    if not isinstance(found, dict) or not found:
        raise BadInput(f"{path.name}: found no iteration; allowed: an object with one by its number")
    return found


def _chunks(first: Path, documents: Sequence[Mapping[str, Mapping[str, Any]]]) -> int:
    """Return the number of stages (chunks) a device.

    It is from the config.json next to `first`, else one more than the highest chunk of an event in the `documents`.
    """
    config = first.with_name("config.json")
    if config.is_file():
        return int(json.loads(config.read_text(encoding="utf-8")).get("vp_size") or 1)
    named = [chunk for one in documents for step in one.values() for chunk in step.get("fwd_chunk", ())]
    return 1 + max(named, default=0)


def _passes(step: Mapping[str, Any], rank: int, ranks: int, chunks: int, number: int) -> Iterator[RanPass]:
    """Yield the passes of iteration `number` in seconds; each iteration begins well after the previous one.

    `step` is the file's object of the iteration; `chunks` are the stages of each of the `ranks` devices.
    """
    split = bool(step.get("wgrad_start"))
    kinds: tuple[tuple[str, PassKind], ...] = (("fwd", F), ("bwd", B if split else BW), ("wgrad", W))
    for name, kind in kinds:
        starts, ends = step.get(f"{name}_start", ()), step.get(f"{name}_end", ())
        for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
            chunk, microbatch = _which(step, name, place, ranks, chunks, len(starts))
            p = Pass(kind, chunk * ranks + rank, microbatch)
            begin = 1e6 * number
            yield RanPass(p, begin + float(start) / 1000, begin + float(end) / 1000)


def _which(step: Mapping[str, Any], name: str, place: int, ranks: int, chunks: int, passes: int) -> tuple[int, int]:
    """Return chunk and micro-batch of the event at index `place` among the `passes` of its name (fwd, bwd or wgrad).

    Where they are not written, they follow from Megatron's interleaved order; `ValueError` if that cannot be. `step` is
    the file's object of the iteration; `chunks` are the stages of each of `ranks` devices.
    """
    listed, batches = step.get(f"{name}_chunk") or (), step.get(f"{name}_minibatch") or ()
    if batches:
        return int(listed[place]) if listed else 0, int(batches[place])
    if chunks == 1:
        return 0, place
    if passes // chunks % ranks:
        raise ValueError("no micro-batch is written, and they are no multiple of the ranks")
    turn, at = divmod(place, ranks * chunks)
    chunk, inside = divmod(at, ranks)
    return (chunk if name == "fwd" else chunks - 1 - chunk), turn * ranks + inside


TRACES.register(TraceFormat("primus", "AMD Primus' pipeline traces, pp_rank_N.json of every rank", _recognises, _read))
