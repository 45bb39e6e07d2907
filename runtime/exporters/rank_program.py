"""Conversion of a schedule to the document that `runtime.execution.program` reads, for our own executors."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import SAVING
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from runtime.exporters.order_limits import every_device_works, one_chain
from runtime.exporters.rank_rows import proof_of_streams, rank_rows


def rank_program(name: str, timeline: Timeline) -> dict[str, Any]:
    """Return the programs of all ranks as a document for our PyTorch executor, after a proof that they end.

    It has the name of the `schedule`, `microbatches`, `rank_of_stage`, the shares that copies move by stage
    (`offloaded`), and the `rows` as text. Raises `BadInput`, whose text begins with `name`, if the executor cannot run
    the schedule or the programs would not end.
    """
    problem = timeline.problem
    every_device_works(name, "our executor of copies and recomputation", problem.placement)
    if any(p.kind in SAVING for p in timeline.schedule.passes()):
        one_chain(name, "our executor of copies and recomputation", problem.placement)
        if problem.network.blocks:
            raise BadInput(f"{name}: overlapped blocks beside copies or recomputation are not supported with PyTorch")
    elif problem.network.blocks:
        # Here the two passes of a block run in turn.
        problem = problem.without_blocks()
        timeline = simulate(problem, timeline.schedule)
    if any(len([*problem.tasks(p)]) > 1 for p in asking(timeline.schedule.passes(), SHORT)):
        raise BadInput(f"{name}: passes of several tasks are not supported with PyTorch; program can express them")
    proof_of_streams(name, timeline)
    return {
        "schedule": timeline.schedule.name,
        "microbatches": problem.microbatches,
        "rank_of_stage": list(problem.placement.stage_device),
        "offloaded": offloaded_shares(timeline),
        "rows": rank_rows(name, timeline),
    }


def offloaded_shares(timeline: Timeline) -> list[float]:
    """Return for each stage the part of an activation, 0 to 1, that its offload moves, to a host or another device.

    0 for a stage without one.
    """
    return [
        float(Fraction(stage.offload.amount, stage.activation)) if stage.offload else 0.0
        for stage in timeline.problem.stages
    ]
