"""Exporter of the zero-bubble repository's node list: JSON, one list of timed nodes for each device.

Each object has the fields of `ScheduledNode` of sail-sg/zero-bubble-pipeline-parallelism, whose word for a device is
stage; build the nodes with `ScheduledNode(**{**node, "type": FuncType(node["type"])})` and run its communication passes
on the lists. The times are whole ticks of the problem; they are given because the repository's own pass prices a BW
wrongly. It places a transfer by the time its tensor leaves, at both ends, and puts tensors in queues without names, so
the order of micro-batches must be the same everywhere.
"""

from __future__ import annotations

import json

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import BW, B, F, Pass, W
from pipesched.problem.placement import Placement
from pipesched.problem.quantities import DeviceId, MicrobatchId
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.exporters.order_limits import ANYTHING, every_device_works, labels, one_chain, order_of
from runtime.lowering.deadlock import Semantics, proved
from runtime.lowering.programs import lower
from runtime.lowering.weight_order import with_weights_in_order

_NAME, _SUFFIX = "zero-bubble-nodes", ".nodes.json"
_RUNTIME = "the zero-bubble repository"
_ELSE = f"torch-csv and {ANYTHING} can express it"


def _write(timeline: Timeline, _: Settings) -> Files:
    _refuse_placement(timeline.problem.placement)
    placed = with_weights_in_order(timeline)
    _refuse_order(timeline, placed)
    label = labels(timeline, 0)
    rows = (
        "[\n  " + ",\n  ".join(json.dumps(node) for node in _nodes(timeline, device, label, placed)) + "\n ]"
        for device in range(timeline.problem.devices)
    )
    _proof(timeline)
    return {_SUFFIX: "[" + ", ".join(rows) + "]\n"}


def _nodes(
    timeline: Timeline, device: DeviceId, label: tuple[int, ...], placed: dict[Pass, Pass]
) -> list[dict[str, object]]:
    return [
        {
            "type": p.kind.value,
            "stage": device,
            "microbatch": label[placed[p].microbatch],
            "chunk": timeline.problem.placement.chunk(p.stage),
            "layer_group_idx": p.stage,
            "start_time": timeline.start(p),
            "completion_time": timeline.end(p),
        }
        for p in asking(timeline.schedule.passes_on(device), SHORT)
    ]


def _proof(timeline: Timeline) -> str:
    return proved(_NAME, lower(timeline), (Semantics.RENDEZVOUS, Semantics.POSTED))


def _refuse_placement(placement: Placement) -> None:
    one_chain(_NAME, _RUNTIME, placement)
    every_device_works(_NAME, _RUNTIME, placement)
    counts = [len(stages) for stages in placement.stages_of]
    if len(set(counts)) > 1:
        raise BadInput(
            f"{_NAME}: found {', '.join(map(str, counts))} stages on the devices; {_RUNTIME} needs as many on each; "
            f"{_ELSE}"
        )
    last = placement.devices - 1
    for stage, (here, there) in enumerate(zip(placement.stage_device, placement.stage_device[1:], strict=False)):
        if here == there and here != last:
            raise BadInput(
                f"{_NAME}: stages {stage} and {stage + 1} are both on device {here}, and {_RUNTIME} hands over inside "
                f"a device on the last one only (device {last}); {_ELSE}"
            )
        if here != there and abs(here - there) not in (1, last):
            raise BadInput(
                f"{_NAME}: stage {stage} on device {here} sends to device {there}, and {_RUNTIME} sends to neighbours "
                f"on the ring of devices only; {_ELSE}"
            )


def _refuse_order(timeline: Timeline, placed: dict[Pass, Pass]) -> None:
    """Raise `BadInput` for an order that the repository's queues of unnamed tensors would mix up, or for blocks.

    The passes of a kind on a stage must take the micro-batches in the order of stage 0's forwards, and the backwards of
    a micro-batch must be split on all stages or on none. `placed` gives, for every pass, the pass that runs in its
    place: the same one, or a W renumbered.
    """
    problem, schedule = timeline.problem, timeline.schedule
    if any(timeline.in_block(p) for p in schedule.passes()):
        raise BadInput(f"{_NAME}: overlapped blocks are not supported by {_RUNTIME}; {_ELSE}")
    stages = range(problem.placement.stages)
    for microbatch in range(problem.microbatches):
        modes = {schedule.is_fused(stage, microbatch) for stage in stages}
        if len(modes) > 1:
            raise BadInput(
                f"{_NAME}: micro-batch {microbatch} runs BW on some stages and B on others, and {_RUNTIME} needs one "
                f"way on all stages; {_ELSE}"
            )
    first = order_of(schedule, 0, F)
    for stage in stages:
        for word, kinds in (("forwards", (F,)), ("backwards", (B, BW)), ("W", (W,))):
            found = tuple(placed[p].microbatch for p in schedule.passes() if p.stage == stage and p.kind in kinds)
            expected = tuple(j for j in first if kinds != (W,) or not schedule.is_fused(stage, j))
            if found != expected:
                raise BadInput(
                    f"{_NAME}: the {word} of stage {stage} take the micro-batches in the order {_list(found)}, and the "
                    f"forwards of stage 0 in the order {_list(expected)}; {_RUNTIME} keeps tensors in queues and needs "
                    f"one order everywhere; {_ELSE}"
                )


def _list(microbatches: tuple[MicrobatchId, ...]) -> str:
    shown = ", ".join(map(str, microbatches[:12]))
    return shown + (", …" if len(microbatches) > 12 else "")


def _notes(timeline: Timeline) -> list[str]:
    notes = []
    if any(p.kind is W for p in timeline.schedule.passes()):
        notes.append("The zero-bubble repository runs the Ws left at the end of a device in one go.")
    if timeline.problem.walks.scale:
        entering = _list(order_of(timeline.schedule, 0, F))
        notes.append(
            f"Micro-batches are numbered as they enter: give the runtime {entering} of the problem in this order, and "
            "tensors of several lengths (--variable-seq-lengths)."
        )
    return notes


EXPORTERS.register(
    Exporter(
        name=_NAME,
        description="the zero-bubble repository's list of scheduled nodes, with start and completion times",
        suffix=_SUFFIX,
        write=_write,
        warnings=_notes,
        proof=_proof,
        features=frozenset(["microbatch_scale"]),
    )
)
