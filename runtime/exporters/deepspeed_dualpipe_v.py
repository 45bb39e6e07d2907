"""The instructions for DeepSpeed's `DualPipeVEngine`, which runs two stages a device in a V, full backwards only.

Rank r holds stage r (phase 0) and stage 2P - 1 - r (phase 1). Every micro-batch has a buffer of its own in each phase,
so any order is possible. The engine queues sends and receives until a CommitP2P, which posts them together and waits
for all: with one after each transfer, both ends of a transfer block until it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from runtime.exporters.deepspeed_module import Word, module_text, spelt
from runtime.lowering.programs import Receives, lower


def write_v(timeline: Timeline, proof: str) -> str:
    """The generated module; a buffer's number is `phase * micro-batches + micro-batch`."""
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
