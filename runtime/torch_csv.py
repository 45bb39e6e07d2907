"""Writes a schedule as the CSV file that PyTorch's pipeline runtime loads: one row a device, one cell a pass.

The file is for `_PipelineScheduleRuntime._load_csv(path, format="compute_only")` of torch 2.13 and for torchtitan's
`pipeline_parallel_schedule_csv`; torch adds the sends and receives itself. The side file says what a CSV cannot:
which rank builds which stages, how the micro-batches were renumbered, and what to mind when running it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipesched.errors import BadInput
from pipesched.passes import BW, B, F, W
from pipesched.placement import Placement
from pipesched.schedule import Schedule, Slot
from pipesched.timeline import Timeline
from pipesched.version import VERSION
from runtime.catalogue import EXPORTERS, Exporter, Files

_NAME = "torch-csv"
_CSV, _META = ".csv", ".meta.json"

# torch's letter for each kind. B then W stays I,W even side by side: the schedule's BW is what was priced as one.
_OPS = {F: "F", B: "I", W: "W", BW: "B"}


def _write(timeline: Timeline) -> Files:
    _refuse(timeline.problem.placement)
    labels = _labels(timeline)
    rows = [[cell for slot in order for cell in _cells(timeline, slot, labels)] for order in timeline.schedule.orders]
    csv = "".join(",".join(row) + "\n" for row in rows)
    return {_CSV: csv, _META: json.dumps(_meta(timeline, labels), indent=2, ensure_ascii=False) + "\n"}


def _refuse(placement: Placement) -> None:
    """Placements that torch's runtime has no way to run."""
    if len(placement.chains) > 1:
        raise BadInput(
            f"{_NAME}: a {placement.name} placement holds every stage on two devices, and torch's runtime takes a "
            "stage on one device only; chrome-trace writes such a schedule"
        )
    idle = [str(device) for device, stages in enumerate(placement.stages_of) if not stages]
    if idle:
        raise BadInput(
            f"{_NAME}: device {', '.join(idle)} holds no stage, and torch's runtime needs at least one on every "
            "device; leave the device out of the problem, or use chrome-trace"
        )
    if placement.chains[0] != tuple(range(placement.stages)):
        walk = ", ".join(map(str, placement.chains[0]))
        raise BadInput(
            f"{_NAME}: micro-batches walk the stages in the order {walk}, and torch's runtime sends from a stage to "
            "the one numbered next only; number the stages along the walk, or use chrome-trace"
        )


def _labels(timeline: Timeline) -> tuple[int, ...]:
    """The new number of each micro-batch, such that the last stage's forwards run 0, 1, 2, ...

    torch appends each loss as it is computed and looks it up by micro-batch number: any other order on the last stage
    crashes or gives wrong gradients without a word. Micro-batches cost the same, so numbers are free to choose.
    """
    last = timeline.problem.placement.stages - 1
    order = (p.microbatch for p in timeline.schedule.passes() if p.kind is F and p.stage == last)
    label_of = {microbatch: label for label, microbatch in enumerate(order)}
    return tuple(label_of[microbatch] for microbatch in range(timeline.problem.microbatches))


def _cells(timeline: Timeline, slot: Slot, labels: tuple[int, ...]) -> list[str]:
    """A slot in torch's words.

    torch starts an `OVERLAP_F_B` when both passes can run and sends what they yield after both: so does a block of
    `times.overlapped`. A pair with no such block runs in turn, and the first one's tensor leaves at once; as an
    `OVERLAP_F_B` it would leave late, which can even close a circle of waits. Hence two cells.
    """
    actions = [f"{p.stage}{_OPS[p.kind]}{labels[p.microbatch]}" for p in slot]
    if timeline.in_block(slot[0]):
        return [f"({';'.join(actions)})OVERLAP_F_B"]
    return actions


def _meta(timeline: Timeline, labels: tuple[int, ...]) -> dict[str, object]:
    problem = timeline.problem
    return {
        "tool": f"pipesched {VERSION}",
        "format": _NAME,
        "torch_format": "compute_only",
        "problem": problem.name,
        "schedule": timeline.schedule.name,
        "devices": problem.devices,
        "stages": problem.placement.stages,
        "microbatches": problem.microbatches,
        "placement": problem.placement.name,
        "device_of_stage": list(problem.placement.stage_device),
        "backward": _backward(timeline.schedule),
        "csv_microbatch": list(labels),
        "notes": _notes(timeline),
    }


def _backward(schedule: Schedule) -> str:
    kinds = {p.kind for p in schedule.passes()} & {B, BW}
    return "mixed" if len(kinds) > 1 else "fused" if BW in kinds else "split"


def _notes(timeline: Timeline) -> list[str]:
    """What runs otherwise in torch than a reader of the schedule would think."""
    return list(_differences(timeline))


def _differences(timeline: Timeline) -> Iterator[str]:
    passes = list(timeline.schedule.passes())
    if any(p.kind is B and p.stage == 0 for p in passes):
        yield (
            "Stage 0 runs split backwards: unless its PipelineStage has a dw_builder, torch does nothing in I and the "
            "whole backward in W there, so its times differ from the schedule's."
        )
    if any(timeline.in_block(p) for p in passes):
        yield (
            "torch runs the two passes of an OVERLAP_F_B cell one after the other unless "
            "register_custom_function(OVERLAP_F_B, ...) gives it a way to run them together."
        )
    last_backward = {p.stage: p.kind for p in passes if p.kind in (W, BW)}
    ends_split = [str(stage) for stage, kind in sorted(last_backward.items()) if kind is W]
    if ends_split:
        yield (
            f"The last backward of stage {', '.join(ends_split)} is a W: DistributedDataParallel does not all-reduce "
            "after it, so its replicas would drift apart silently."
        )


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="PyTorch's _PipelineScheduleRuntime and torchtitan: order of passes on every rank (compute_only)",
        suffix=_CSV,
        write=_write,
        warnings=_notes,
    )
)
