"""Shared parts of PyTorch's two CSV formats: syntax of passes, limits of PyTorch's runtime, and the side file."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import StageId
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.exporters.order_limits import every_device_works, labels, one_chain
from runtime.lowering.programs import Compute

_RUNTIME = "torch's runtime"

# torch's letter for each kind. B then W stays I,W even side by side: the schedule's BW is what was priced as one.
_OPS = {F: "F", B: "I", W: "W", BW: "B"}


def refuse(name: str, placement: Placement) -> None:
    """Raise `BadInput` for a placement that PyTorch's runtime cannot run.

    The message begins with `name`, that of the format.
    """
    one_chain(name, _RUNTIME, placement)
    every_device_works(name, _RUNTIME, placement)


def last_stage_labels(timeline: Timeline) -> tuple[int, ...]:
    """Return the new number of each micro-batch, such that the last stage's forwards run 0, 1, 2, ...

    Entry j is the new number of micro-batch j. PyTorch appends each loss as it is computed and looks it up by number:
    any other order on the last stage crashes or silently gives wrong gradients. For placements with one chain.
    """
    return labels(timeline, timeline.problem.placement.stages - 1)


def cell(compute: Compute, label: tuple[int, ...]) -> str:
    """Return the CSV cell of a pass or block in PyTorch's syntax, with micro-batch j written as `label[j]`.

    PyTorch starts an `OVERLAP_F_B` when both passes can run, and sends the tensors of both at its end: so does a block
    of `times.overlapped`. A pair without such a block runs one pass after the other, and the tensor of the first leaves
    at once. As an `OVERLAP_F_B` that tensor would leave late, which can even close a cycle of waits; so such a pair is
    written as two passes.
    """
    actions = [f"{p.stage}{_OPS[p.kind]}{label[p.microbatch]}" for p in compute.passes]
    return actions[0] if len(actions) == 1 else f"({';'.join(actions)})OVERLAP_F_B"


def side_file(
    timeline: Timeline, name: str, torch_format: str, label: tuple[int, ...], proof: str, notes: list[str]
) -> str:
    """Return the JSON text of what the CSV lacks.

    That is `device_of_stage`, the new number of each micro-batch (`csv_microbatch`), how backwards are run
    (`backward`), the sentence on deadlock, the user's `notes`, and names and sizes. `name` is our format,
    `torch_format` the name that PyTorch's reader takes; `label[j]` is the number of micro-batch j in the CSV; `proof`
    is the sentence on deadlock.
    """
    problem = timeline.problem
    document = {
        "tool": f"pipesched {VERSION}",
        "format": name,
        "torch_format": torch_format,
        "problem": problem.name,
        "schedule": timeline.schedule.name,
        "devices": problem.devices,
        "stages": problem.placement.stages,
        "microbatches": problem.microbatches,
        "placement": problem.placement.name,
        "device_of_stage": list(problem.placement.stage_device),
        "backward": _backward(timeline.schedule),
        "csv_microbatch": list(label),
        "deadlock": proof,
        "notes": notes,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _backward(schedule: Schedule) -> str:
    kinds = {p.kind for p in schedule.passes()} & {B, BW}
    return "mixed" if len(kinds) > 1 else "fused" if BW in kinds else "split"


def notes(timeline: Timeline) -> list[str]:
    """Return a sentence for the user on each difference between PyTorch's execution and the schedule; may be empty."""
    return list(_differences(timeline))


def _differences(timeline: Timeline) -> Iterator[str]:
    passes = list(timeline.schedule.passes())
    if any(p.kind is B and p.stage == 0 for p in passes):
        yield (
            "PyTorch's I (input backward, our B) does nothing on stage 0; its W runs the whole backward. So its times "
            "differ from the schedule's, unless its PipelineStage has a dw_builder."
        )
    if any(timeline.in_block(p) for p in passes):
        yield (
            "torch runs the two passes of an OVERLAP_F_B cell one after the other unless "
            "register_custom_function(OVERLAP_F_B, ...) gives it a way to run them together."
        )
    last_backward = {p.stage: p.kind for p in passes if p.kind in (W, BW)}
    ends_split = [stage for stage, kind in sorted(last_backward.items()) if kind is W]
    if ends_split:
        yield (
            f"{_on_stages(ends_split, timeline.problem.placement.stages)} the last backward is a W: "
            "DistributedDataParallel does not all-reduce after it, so its replicas would drift apart silently."
        )


def _on_stages(stages: list[StageId], count: int) -> str:
    """Return the stages that a note is about, as the beginning of its sentence; `count` is the number of all stages."""
    if len(stages) == count > 1:
        return f"On all {count} stages"
    return f"On stage{'s' if len(stages) > 1 else ''} {', '.join(map(str, stages))}"
