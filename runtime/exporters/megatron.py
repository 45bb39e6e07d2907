"""Exporter of Python modules that make Megatron-Core train by a schedule, with all code that they need.

Micro-batches of weight passes are renumbered, since Transformer Engine computes weight gradients in the order of the
backwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import ONCE, RECOMPUTATIONS, UNSHARD, Pass, W
from pipesched.problem.quantities import MicrobatchId
from pipesched.schedule.once_an_iteration import of_microbatches
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.exporters.megatron_module import module_text
from runtime.exporters.order_limits import ANYTHING, every_device_works, one_chain
from runtime.exporters.rank_program import offloaded_shares
from runtime.exporters.rank_rows import proof_of_streams, rank_rows, runs_on_streams
from runtime.lowering.deadlock import proved
from runtime.lowering.programs import Compute, Instruction, Send, lower
from runtime.lowering.weight_order import weight_microbatches

_NAME, _SUFFIX = "megatron", ".megatron.py"


def program_document(timeline: Timeline) -> dict[str, Any]:
    """Return the programs of all ranks as a document that `runtime.execution.program.program_of` reads.

    It has the names of `schedule` and `problem`, `microbatches`, `rank_of_stage`, the share of each stage's activation
    that copies move (`offloaded`), and `rows`, a text for each rank. Raises `BadInput` if Megatron cannot run the
    schedule.
    """
    _refuse(timeline)
    timeline = of_microbatches(timeline)
    problem = timeline.problem
    return {
        "schedule": timeline.schedule.name,
        "problem": problem.name,
        "microbatches": problem.microbatches,
        "rank_of_stage": list(problem.placement.stage_device),
        "offloaded": offloaded_shares(timeline),
        "rows": rank_rows(_NAME, timeline) if _on_streams(timeline) else _words(timeline),
    }


def _words(timeline: Timeline) -> list[str]:
    weights = weight_microbatches(timeline.schedule)
    return [" ".join(_word(step, weights) for step in asking(row, SHORT)) for row in lower(timeline).rows]


def _refuse(timeline: Timeline) -> None:
    placement = timeline.problem.placement
    one_chain(_NAME, "Megatron", placement)
    every_device_works(_NAME, "Megatron", placement)
    counts = [len(stages) for stages in placement.stages_of]
    if len(set(counts)) > 1:
        found = ", ".join(map(str, counts))
        raise BadInput(
            f"{_NAME}: found {found} stages on the devices, and Megatron's ranks have equally many model chunks; "
            f"torch-csv and {ANYTHING} can express it"
        )
    if UNSHARD in (p.kind for p in timeline.schedule.passes()):
        raise BadInput(
            f"{_NAME}: gatherings of parameters are not Megatron's; torch-csv-comms and program can express them"
        )
    copies = timeline.problem.network.blocks and timeline.schedule.task_orders
    if copies or any(timeline.in_block(p) for p in timeline.schedule.passes()):
        what = "overlapped blocks beside copies are" if copies else "overlapped blocks are"
        raise BadInput(f"{_NAME}: {what} not supported; torch-csv and {ANYTHING} can express them")


def _word(step: Instruction, weights: dict[Pass, MicrobatchId]) -> str:
    if isinstance(step, Compute):
        (p,) = step.passes
        return str(p._replace(microbatch=weights.get(p, p.microbatch)))
    transfer = step.transfer
    peer = f"send{transfer.target}" if isinstance(step, Send) else f"recv{transfer.source}"
    return f"{peer}:{transfer.producer}"


def _write(timeline: Timeline, _: Settings) -> Files:
    return {_SUFFIX: module_text(program_document(timeline), _proof(timeline))}


def _notes(timeline: Timeline) -> Iterator[str]:
    kinds = {p.kind for p in timeline.schedule.passes()}
    if kinds.intersection(ONCE):
        yield "Megatron reduces gradients, takes their norm and steps by itself, after the last pass of a rank"
    if W in kinds:
        yield (
            "W computes weight gradients of Megatron's own linears; B computes those of Transformer Engine, unless "
            "delay_transformer_engine() of the module is called before the model is built"
        )
    if kinds.intersection(RECOMPUTATIONS):
        yield "R runs the forward of the whole stage again: its time, and what it keeps, should be those of that"


def _proof(timeline: Timeline) -> str:
    timeline = of_microbatches(timeline)
    return proof_of_streams(_NAME, timeline) if _on_streams(timeline) else proved(_NAME, lower(timeline))


def _on_streams(timeline: Timeline) -> bool:
    network = timeline.problem.network
    return not (network.blocks or network.occupies_several) and runs_on_streams(timeline)


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="Megatron-Core: a Python module that has it train by this order (equally many stages a rank)",
        suffix=_SUFFIX,
        write=_write,
        refuse=_refuse,
        warnings=lambda timeline: [*_notes(timeline)],
        proof=_proof,
        copies=True,
        transfers=True,
    )
)
