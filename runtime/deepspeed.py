"""Writes a schedule as a Python module for DeepSpeed: a subclass of its `PipeSchedule` that yields the instructions.

DeepSpeed runs stage s on device s, full backwards only, and its sends and receives block. It keeps one loss, so the
last stage must run each backward right after its forward, and one received gradient, so no other RecvGrad and no other
BackwardPass may come between a RecvGrad and its BackwardPass: that would give wrong gradients without a word. Hence
receives stand as late as they can.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from pipesched.errors import BadInput
from pipesched.passes import BW, F, Pass
from pipesched.timeline import Timeline
from pipesched.version import VERSION
from runtime.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.communication import Compute, Instruction, Receives, Send, Tensor, lower
from runtime.deadlock import proved
from runtime.limits import ANYTHING, every_device_works, one_chain, order_of

_NAME, _SUFFIX = "deepspeed", ".deepspeed.py"
_ELSE = f"torch-csv and {ANYTHING} can express it"

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}
"""A pipeline schedule for DeepSpeed's PipelineEngine.

    engine._train_schedule = lambda: Schedule(engine.micro_batches, engine.num_stages, engine.stage_id)

Each row holds one stage's instructions, with the number of the buffer each works on.
{proof}
"""

from deepspeed.runtime.pipe import schedule as instructions

MICROBATCHES = {microbatches}
BUFFERS = {buffers!r}
ROWS = (
{rows}
)


class Schedule(instructions.PipeSchedule):
    def __init__(self, micro_batches, stages, stage_id):
        super().__init__(micro_batches, stages, stage_id)
        if (micro_batches, stages) != (MICROBATCHES, len(ROWS)):
            raise ValueError(
                f"this schedule has {{MICROBATCHES}} micro-batches and {{len(ROWS)}} stages, "
                f"not {{micro_batches}} and {{stages}}"
            )

    def steps(self):
        for word in ROWS[self.stage_id].split():
            name, buffer = word.split(":")
            yield [getattr(instructions, name)(buffer_id=int(buffer))]
        yield [instructions.ReduceTiedGrads(), instructions.ReduceGrads(), instructions.OptimizerStep()]

    def num_pipe_buffers(self):
        return BUFFERS[self.stage_id]
'''

# An instruction's name and the micro-batch it is for.
_Word = tuple[str, int]


def _write(timeline: Timeline, _: Settings) -> Files:
    _refuse(timeline)
    loads = order_of(timeline.schedule, 0, F)
    last = timeline.problem.placement.stages - 1
    program = lower(timeline, Receives.LATE)
    words = [
        list(_loading(row, loads if stage in (0, last) else ()))
        for stage, row in enumerate(_spelt(row) for row in program.rows)
    ]
    buffers = [_buffers(row) for row in words]
    rows = (
        " ".join(f"{name}:{buffer}" for (name, _), buffer in zip(row, used, strict=True))
        for row, used in zip(words, buffers, strict=True)
    )
    text = _MODULE.format(
        schedule=timeline.schedule.name,
        problem=timeline.problem.name,
        version=VERSION,
        proof=_proof(timeline),
        microbatches=timeline.problem.microbatches,
        buffers=tuple(max(used) + 1 for used in buffers),
        rows="\n".join(f'    "{row}",' for row in rows),
    )
    return {_SUFFIX: text}


def _refuse(timeline: Timeline) -> None:
    schedule, placement = timeline.schedule, timeline.problem.placement
    one_chain(_NAME, "DeepSpeed", placement)
    every_device_works(_NAME, "DeepSpeed", placement)
    if placement.stage_device != tuple(range(placement.devices)):
        where = ", ".join(map(str, placement.stage_device))
        raise BadInput(
            f"{_NAME}: found stages on devices {where}, and DeepSpeed runs stage s on device s only; {_ELSE}"
        )
    split = next((p for p in schedule.passes() if p.kind not in (F, BW)), None)
    if split is not None:
        raise BadInput(f"{_NAME}: found {split}; DeepSpeed runs full backwards only (BW); {_ELSE}")
    if any(timeline.in_block(p) for p in schedule.passes()):
        raise BadInput(f"{_NAME}: DeepSpeed has no word for an overlapped block; {_ELSE}")
    last = placement.stages - 1
    passes = list(schedule.passes_on(last))
    for p, following in zip(passes, [*passes[1:], None], strict=True):
        if p.kind is F and following != Pass(BW, last, p.microbatch):
            raise BadInput(
                f"{_NAME}: on the last stage {p} is followed by {following}; DeepSpeed keeps one loss, so each "
                f"backward must directly follow its forward there; {_ELSE}"
            )


def _spelt(row: Sequence[Instruction]) -> list[_Word]:
    names = {F: "ForwardPass", BW: "BackwardPass"}
    tensors = {Tensor.ACTIVATION: "Activation", Tensor.GRADIENT: "Grad"}
    words: list[_Word] = []
    for step in row:
        if isinstance(step, Compute):
            words += [(names[p.kind], p.microbatch) for p in step.passes]
        else:
            end = "Send" if isinstance(step, Send) else "Recv"
            words.append((end + tensors[step.transfer.tensor], step.transfer.microbatch))
    return words


def _loading(row: Sequence[_Word], loads: Sequence[int]) -> Iterator[_Word]:
    """The instructions with those that load a slice of the batch: inputs on the first stage, labels on the last.

    A load takes the next slice there is, so both stages must load in one order, that of the first stage's forwards:
    where the last stage runs a micro-batch earlier, it loads those before it as well.
    """
    loaded = 0
    for name, microbatch in row:
        if name == "ForwardPass" and microbatch in loads:
            for ahead in loads[loaded : loads.index(microbatch) + 1]:
                yield "LoadMicroBatch", ahead
            loaded = max(loaded, loads.index(microbatch) + 1)
        yield name, microbatch


def _buffers(row: Sequence[_Word]) -> list[int]:
    """The buffer of each instruction: a micro-batch holds one from its first instruction to its last."""
    ends = {microbatch: place for place, (_, microbatch) in enumerate(row)}
    free: list[int] = []
    held: dict[int, int] = {}
    used: list[int] = []
    count = 0
    for place, (_, microbatch) in enumerate(row):
        if microbatch not in held:
            if not free:
                free.append(count)
                count += 1
            held[microbatch] = heapq.heappop(free)
        used.append(held[microbatch])
        if ends[microbatch] == place:
            heapq.heappush(free, held[microbatch])
    return used


def _proof(timeline: Timeline) -> str:
    return proved(_NAME, lower(timeline, Receives.LATE))


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="DeepSpeed: a Python module with a subclass of its PipeSchedule (full backwards, a stage a device)",
        suffix=_SUFFIX,
        write=_write,
        proof=_proof,
    )
)
