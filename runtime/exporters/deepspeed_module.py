"""Shared parts of DeepSpeed's two exporters: the generated Python module, and the syntax of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.passes import BW, F
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.lowering.programs import Compute, Instruction, Send, Tensor

_MODULE = '''# schedule {schedule!a} of problem {problem!a}, by pipesched {version}
"""A pipeline schedule for DeepSpeed's {engine}, 0.19.8 or later.

    engine, *_ = deepspeed.initialize(...)
    install(engine)

Each row holds one rank's instructions, with the number of the buffer each works on.
{proof}
"""

from deepspeed.runtime.pipe import schedule as instructions

ENGINE = "{engine}"
MICROBATCHES = {microbatches}
BUFFERS = {buffers!r}
ROWS = (
{rows}
)


def install(engine):
    """Have the engine train by this schedule; ValueError where it would not run it, or not as it is meant."""
    if not callable(getattr(engine, "_train_schedule", None)):
        raise ValueError("this DeepSpeed asks no engine for its schedule and would ignore this one: 0.19.8 or later")
    names = [one.__name__ for one in type(engine).__mro__]
    if ("DualPipeVEngine" in names) != (ENGINE == "DualPipeVEngine"):
        raise ValueError(f"this schedule is for a {{ENGINE}}, not for a {{names[0]}}")
    made = Schedule(engine.micro_batches, engine.num_stages, engine.stage_id)
    engine._train_schedule = lambda: made


class Schedule(instructions.PipeSchedule):
    def __init__(self, micro_batches, stages, stage_id):
        super().__init__(micro_batches, stages, stage_id)
        if (micro_batches, stages) != (MICROBATCHES, len(ROWS)):
            raise ValueError(
                f"this schedule has {{MICROBATCHES}} micro-batches and {{len(ROWS)}} ranks, "
                f"not {{micro_batches}} and {{stages}}"
            )

    def steps(self):
        for word in ROWS[self.stage_id].split():
            name, *numbers = word.split(":")
            yield [getattr(instructions, name)(**dict(zip(("buffer_id", "phase"), map(int, numbers))))]
        yield [instructions.ReduceTiedGrads(), instructions.ReduceGrads(), instructions.OptimizerStep()]

    def num_pipe_buffers(self):
        return BUFFERS[self.stage_id]
'''


class Word(NamedTuple):
    """An instruction: its DeepSpeed name, the stage that executes it, and its micro-batch."""

    name: str
    stage: int
    microbatch: int


def spelt(row: Sequence[Instruction]) -> list[Word]:
    """Return a device's lowered program (passes, sends, receives) as DeepSpeed instructions, in the same order.

    `KeyError` for passes other than F and BW.
    """
    names = {F: "ForwardPass", BW: "BackwardPass"}
    tensors = {Tensor.ACTIVATION: "Activation", Tensor.GRADIENT: "Grad"}
    words: list[Word] = []
    for step in row:
        if isinstance(step, Compute):
            words += [Word(names[p.kind], p.stage, p.microbatch) for p in step.passes]
        else:
            end = step.transfer.producer if isinstance(step, Send) else step.transfer.consumer
            name = ("Send" if isinstance(step, Send) else "Recv") + tensors[step.transfer.tensor]
            words.append(Word(name, end.stage, step.transfer.microbatch))
    return words


def module_text(
    timeline: Timeline, rows: Sequence[Sequence[str]], buffers: tuple[int, ...], engine: str, proof: str
) -> str:
    """Return the text of the generated module.

    `rows[r]` are the instructions of rank r with their arguments, such as `ForwardPass:0`; `buffers[r]` is the number
    of buffers that it needs; `engine` is DeepSpeed's class that runs them; `proof` is a sentence for the module's
    docstring.
    """
    return _MODULE.format(
        schedule=timeline.schedule.name,
        problem=timeline.problem.name,
        version=VERSION,
        engine=engine,
        proof=proof,
        microbatches=timeline.problem.microbatches,
        buffers=buffers,
        rows="\n".join(f'    "{" ".join(row)}",' for row in rows),
    )
