"""Program of every device as JSON: computes, sends and receives in order, for any placement.

    {"format": "pipesched-program 1", "devices": 2, "stages": 4, "microbatches": 2,
     "device_of_stage": [0, 1, 1, 0], "chains": [[0, 1], [2, 3]], "copy_of": [0, 1, 0, 1], "deadlock": "...",
     "programs": [[{"do": "F", "stage": 0, "microbatch": 0, "chain": 0},
                   {"do": "SEND", "tensor": "activation", "stage": 0, "microbatch": 0, "chain": 0,
                    "peer": 1, "peer_stage": 1}, ...], ...]}

`do` is a kind of pass (F, B, W, BW), `SEND` or `RECV` (`stage` is the near stage, `peer_stage` the one on device
`peer`), or `BLOCK`, whose `passes` start and end as one. A micro-batch walks its chain forwards, and back. `copy_of[s]`
is the position of stage s on its chain: stages of equal position have the same layers, in a bidirectional placement on
two devices, whose gradients an executor must add up. Tensors that stay on their device are no instructions. Sends may
block or not: the plan is proved under sends that do.

Where micro-batches are c pieces, `sequence_chunks` is c: each piece is a micro-batch of its own here, and stage c s + j
is stage s of the problem for the pieces with number j.

Where passes are made of tasks, `streams` has for each device the tasks of every stream: `{"do": "F", "stage": 0,
"microbatch": 0, "chain": 0, "task": "dispatch", "waits": ["F0.0/attn"]}`, where `waits` are the tasks of other streams,
of this device or another, that must have ended. A copy O or L from or to another device has `memory_of`, that device;
else the activation moves to the host. `transfers` has for each device, in one order, its sends and receives
for tasks of others: `{"do": "SEND", "tensor": "activation", "of": "F0.0/mlp", "for": "F1.0/attn", "peer": 1}`. A SEND
runs once task `of` has ended, and task `for` once its RECV has; `tensor` is null where only the end of the task is
signalled (memory that devices share). They are on a stream of their own, one at a time, both ends in one order, and the
plan is proved under sends that block. Where the schedule orders tasks by itself there are no `programs`: passes
interleave, and streams and transfers alone say in which order.
"""

from __future__ import annotations

import json

from pipesched.deadline import SHORT, asking
from pipesched.errors import BadInput
from pipesched.problem.passes import OFFLOAD, RELOAD, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.version import VERSION
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings
from runtime.importers.program_json import BLOCK, FORMAT, NAME, RECV, SEND
from runtime.lowering.deadlock import Semantics, proved
from runtime.lowering.programs import Compute, Instruction, Send, Tensor, lower
from runtime.lowering.stream_programs import needed_by, stream_programs
from runtime.lowering.stream_transfers import Streams, TaskTransfer, TransferRows, proved_streams, transfer_rows

_SUFFIX = ".program.json"


def _write(timeline: Timeline, _: Settings) -> Files:
    problem = timeline.problem
    placement = problem.placement
    document = {
        "tool": f"pipesched {VERSION}",
        "format": FORMAT,
        "problem": problem.name,
        "schedule": timeline.schedule.name,
        "devices": problem.devices,
        "stages": placement.stages,
        "microbatches": problem.microbatches,
        **({"sequence_chunks": problem.chain_arcs.pieces} if problem.chain_arcs.pieces > 1 else {}),
        "device_of_stage": list(placement.stage_device),
        "chains": [list(chain) for chain in placement.chains],
        "copy_of": [placement.chains[chain].index(stage) for stage, chain in enumerate(placement.chain_index)],
        "deadlock": _proof(timeline),
    }
    schedule = timeline.schedule
    if schedule.task_orders and problem.network.blocks:
        raise BadInput(f"{NAME}: found orders of tasks and overlapped blocks; allowed: one of them")
    if _has_streams(timeline):
        streams = stream_programs(timeline)
        document["streams"] = _streams(timeline, streams)
        document["transfers"] = _transfers(timeline, transfer_rows(timeline, streams))
    head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
    if schedule.task_orders:
        return {_SUFFIX: head + "\n}\n"}
    rows = (
        "[\n  " + ",\n  ".join(json.dumps(_step(problem, s)) for s in asking(row, SHORT)) + "\n ]"
        for row in lower(timeline).rows
    )
    return {_SUFFIX: head + ',\n "programs": [' + ", ".join(rows) + "]\n}\n"}


def _has_streams(timeline: Timeline) -> bool:
    several = timeline.schedule.waits or not timeline.problem.network.one_task_each
    return bool(several) and not timeline.problem.network.blocks


def _streams(timeline: Timeline, streams: Streams) -> list[dict[str, list[dict[str, object]]]]:
    """Return for each device the tasks of every stream, in order, as the objects under `streams` in the format."""
    problem = timeline.problem
    devices: list[dict[str, list[dict[str, object]]]] = [{} for _ in range(problem.devices)]
    for (device, stream), steps in streams.items():
        devices[device][stream] = [
            _pass(problem, task.of)
            | {"task": problem.task_text(task).partition("/")[2], "waits": list(map(problem.task_text, waits))}
            for task, waits in steps
        ]
    return devices


def _transfers(timeline: Timeline, rows: TransferRows) -> list[list[dict[str, object]]]:
    """Return for each device its sends and receives, in order, as the objects that the format has under `transfers`."""
    text = timeline.problem.task_text
    return [
        [
            {
                "do": SEND if one.source == device else RECV,
                "tensor": _tensor(timeline, one),
                "of": text(one.producer),
                "for": text(one.consumer),
                "peer": one.target if one.source == device else one.source,
            }
            for one in row
        ]
        for device, row in enumerate(rows)
    ]


def _tensor(timeline: Timeline, one: TaskTransfer) -> str | None:
    """Return the name of the tensor transferred between two stages; None if only the end of a task is signalled."""
    if one.producer not in needed_by(timeline, one.consumer):
        return None
    return (Tensor.ACTIVATION if one.producer.of.kind is F else Tensor.GRADIENT).value


def _proof(timeline: Timeline) -> str:
    proofs = [] if timeline.schedule.task_orders else [proved(NAME, lower(timeline), tuple(Semantics))]
    if _has_streams(timeline):
        streams = stream_programs(timeline)
        proofs.append(proved_streams(NAME, timeline, streams, transfer_rows(timeline, streams)))
    return "; streams: ".join(proofs)


def _step(problem: Problem, step: Instruction) -> dict[str, object]:
    if isinstance(step, Compute):
        passes = [_pass(problem, p) for p in step.passes]
        return passes[0] if len(passes) == 1 else {"do": BLOCK, "passes": passes}
    transfer = step.transfer
    sends = isinstance(step, Send)
    near, far = (transfer.producer, transfer.consumer) if sends else (transfer.consumer, transfer.producer)
    return {
        "do": SEND if sends else RECV,
        "tensor": transfer.tensor.value,
        "stage": near.stage,
        "microbatch": transfer.microbatch,
        "chain": problem.placement.chain_index[near.stage],
        "peer": transfer.target if sends else transfer.source,
        "peer_stage": far.stage,
    }


def _pass(problem: Problem, p: Pass) -> dict[str, object]:
    chain, copies = problem.placement.chain_index[p.stage], problem.stages[p.stage].offload
    step: dict[str, object] = {"do": p.kind.value, "stage": p.stage, "microbatch": p.microbatch, "chain": chain}
    if p.kind in (OFFLOAD, RELOAD) and copies and copies.to is not None:
        step["memory_of"] = copies.to
    return step


EXPORTERS.register(
    Exporter(
        name=NAME,
        description="computes, sends and receives of every device as JSON, for any placement (bidirectional ones too)",
        suffix=_SUFFIX,
        write=_write,
        proof=_proof,
        streams=True,
        features=frozenset(["memory.offload.to", "microbatch_scale", "sequence_chunks"]),
    )
)
