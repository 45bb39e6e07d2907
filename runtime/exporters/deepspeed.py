"""Exporter of Python modules for DeepSpeed: a subclass of its `PipeSchedule` that yields the instructions.

DeepSpeed's `PipelineEngine` runs stage s on device s, full backwards only, and its sends and receives block. It keeps
one loss, so the last stage must run each backward directly after its forward, and one received gradient, so no other
RecvGrad and no other BackwardPass may come between a RecvGrad and its BackwardPass: that would silently give wrong
gradients. Hence receives are placed as late as possible. Two stages a device, in a V, run in another of its engines.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from pipesched.errors import BadInput
from pipesched.problem.passes import BW, F, Pass
from pipesched.problem.placement import v_shape
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.exporters.deepspeed_module import Word, module_text, spelt
from runtime.exporters.order_limits import ANYTHING, every_device_works, one_chain, order_of
from runtime.lowering.deadlock import proved
from runtime.lowering.programs import Receives, lower


def write_v(timeline: Timeline, proof: str) -> str:
    """Return the text of the module for stages in a V, two a device, which DeepSpeed's `DualPipeVEngine` runs.

    A buffer's number is `phase * micro-batches + micro-batch`; phase 0 is the first stage of a device, 1 the second.
    `proof` is a sentence for the module's docstring.
    """
    problem = timeline.problem
    rows = [list(_words(spelt(row), problem)) for row in lower(timeline, Receives.LATE).rows]
    buffers = (2 * problem.microbatches,) * problem.devices
    return module_text(timeline, rows, buffers, "DualPipeVEngine", proof)


def _words(row: Sequence[Word], problem: Problem) -> Iterator[str]:
    for word in row:
        phase = int(word.stage >= problem.devices)
        buffer = phase * problem.microbatches + word.microbatch
        if word.name == "ForwardPass" and word.stage == 0:
            yield f"LoadMicroBatch:{buffer}"
        yield f"{word.name}:{buffer}:{phase}"
        if word.name.startswith(("Send", "Recv")):
            yield "CommitP2P"


_NAME, _SUFFIX = "deepspeed", ".deepspeed.py"
_ELSE = f"torch-csv and {ANYTHING} can express it"


def _write(timeline: Timeline, _: Settings) -> Files:
    if _is_v(timeline):
        return {_SUFFIX: write_v(timeline, _proof(timeline))}
    loads = order_of(timeline.schedule, 0, F)
    last = timeline.problem.placement.stages - 1
    rows = [
        list(_loading(row, loads if stage in (0, last) else ()))
        for stage, row in enumerate(spelt(row) for row in lower(timeline, Receives.LATE).rows)
    ]
    buffers = [_buffers(row) for row in rows]
    words = [
        [f"{word.name}:{buffer}" for word, buffer in zip(row, used, strict=True)]
        for row, used in zip(rows, buffers, strict=True)
    ]
    counts = tuple(max(used) + 1 for used in buffers)
    return {_SUFFIX: module_text(timeline, words, counts, "PipelineEngine", _proof(timeline))}


def _is_v(timeline: Timeline) -> bool:
    placement = timeline.problem.placement
    return placement.stage_device == v_shape(placement.devices).stage_device


def _refuse(timeline: Timeline) -> None:
    schedule, placement = timeline.schedule, timeline.problem.placement
    one_chain(_NAME, "DeepSpeed", placement)
    every_device_works(_NAME, "DeepSpeed", placement)
    if placement.stage_device != tuple(range(placement.devices)) and not _is_v(timeline):
        where = ", ".join(map(str, placement.stage_device))
        raise BadInput(
            f"{_NAME}: found stages on devices {where}, and DeepSpeed runs stage s on device s, or two stages a device"
            f" in a V; {_ELSE}"
        )
    split = next((p for p in schedule.passes() if p.kind not in (F, BW)), None)
    if split is not None:
        raise BadInput(f"{_NAME}: found {split}; DeepSpeed runs full backwards only (BW); {_ELSE}")
    if any(timeline.in_block(p) for p in schedule.passes()):
        raise BadInput(f"{_NAME}: overlapped blocks are not supported by DeepSpeed; {_ELSE}")
    if _is_v(timeline):
        if timeline.problem.microbatches < 2 * placement.devices:
            raise BadInput(
                f"{_NAME}: found {timeline.problem.microbatches} micro-batches; DeepSpeed's engine for a V takes at"
                f" least two a device, {2 * placement.devices}; {_ELSE}"
            )
        return
    last = placement.stages - 1
    passes = list(schedule.passes_on(last))
    for p, following in zip(passes, [*passes[1:], None], strict=True):
        if p.kind is F and following != Pass(BW, last, p.microbatch):
            raise BadInput(
                f"{_NAME}: on the last stage {p} is followed by {following}; DeepSpeed keeps one loss, so each "
                f"backward must directly follow its forward there; {_ELSE}"
            )


def _loading(row: Sequence[Word], loads: Sequence[int]) -> Iterator[Word]:
    """Yield a device's instructions with `LoadMicroBatch` added: inputs on the first stage, labels on the last.

    `loads` are the micro-batches in the order of the first stage's forwards; empty for a stage that is neither first
    nor last. A load takes the next slice of the batch there is, so both stages must load in this one order: where the
    last stage runs a micro-batch earlier, it loads those before it as well.
    """
    loaded = 0
    for word in row:
        if word.name == "ForwardPass" and word.microbatch in loads:
            for ahead in loads[loaded : loads.index(word.microbatch) + 1]:
                yield Word("LoadMicroBatch", word.stage, ahead)
            loaded = max(loaded, loads.index(word.microbatch) + 1)
        yield word


def _buffers(row: Sequence[Word]) -> list[int]:
    """Return the number of the buffer of each instruction, from 0.

    A micro-batch occupies one buffer from its first instruction to its last, and takes the lowest free number.
    """
    ends = {word.microbatch: place for place, word in enumerate(row)}
    free: list[int] = []
    buffer_of: dict[int, int] = {}
    used: list[int] = []
    count = 0
    for place, word in enumerate(row):
        microbatch = word.microbatch
        if microbatch not in buffer_of:
            if not free:
                free.append(count)
                count += 1
            buffer_of[microbatch] = heapq.heappop(free)
        used.append(buffer_of[microbatch])
        if ends[microbatch] == place:
            heapq.heappush(free, buffer_of[microbatch])
    return used


def _proof(timeline: Timeline) -> str:
    return proved(_NAME, lower(timeline, Receives.LATE))


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="DeepSpeed: a Python module with a subclass of its PipeSchedule (full backwards; linear or V)",
        suffix=_SUFFIX,
        write=_write,
        refuse=_refuse,
        proof=_proof,
    )
)
