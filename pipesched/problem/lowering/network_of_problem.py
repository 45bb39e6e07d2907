"""Construction of a problem's task network: tasks, arcs between them, and the memory that passes take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product

from pipesched.deadline import asking
from pipesched.problem.features.saved_activations import COPIES, change_elsewhere, given_up, options
from pipesched.problem.lowering.dependencies import Dependencies
from pipesched.problem.lowering.stage_memory import device_change
from pipesched.problem.network.task_network import (
    Arc,
    MemoryChange,
    Mode,
    Need,
    PassType,
    Resource,
    TaskNetwork,
    TaskTemplate,
    TaskType,
)
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, TaskPart, Ticks
from pipesched.problem.stage import TaskSpec, entry_of


def network_of(
    passes: Dependencies,
    modes: frozenset[Mode],
    room: tuple[MemorySteps | None, ...],
    scale: tuple[Fraction, ...],
) -> TaskNetwork:
    """Return the task network of passes whose backwards run in these `modes`.

    `room` is each device's activation memory, None where unlimited. `scale` are the factors of micro-batches, empty
    where all are equal.
    """
    stages, device_of = passes.stages, passes.placement.stage_device
    kinds = [kind for kind in (F, B, W, BW) if kind is F or (Mode.FUSED if kind is BW else Mode.SPLIT) in modes]
    types = [(kind, stage) for kind in kinds for stage in range(len(stages))]
    saving = [(kind, s) for s, stage in enumerate(stages) for kind in stage.saving_kinds]
    types += [
        *saving,
        *((kind, s) for s, stage in enumerate(stages) for kind in stage.kinds_of_parameters),
    ]
    tasks = {
        (kind, stage): tuple(
            TaskTemplate(_occupied(passes, device_of[stage], task), task.ticks, task.name)
            for task in passes.tasks[kind, stage]
        )
        for kind, stage in types
    }
    ends = {pass_type: passes.ends_of(*pass_type) for pass_type in types}
    needs = {pass_type: passes.needs(*pass_type) for pass_type in types}
    entries = {pass_type: entry_of(passes.tasks[pass_type]) for pass_type in types if pass_type[0] in (F, B, BW)}
    to = {s: own.offload.to for s, own in enumerate(stages) if own.offload}
    hosts = passes.resources.host_memory(device_of[s] for s, peer in to.items() if peer is None) if to else ()
    of_host = {device: len(room) + n for n, host in enumerate(hosts) for device in host.devices}
    moved = {s: of_host[device_of[s]] if peer is None else peer for s, peer in to.items()}
    return TaskNetwork(
        tasks,
        ends,
        {(kind, s): MemoryChange(*device_change(stages[s], kind)) for kind, s in types},
        tuple(arc for pass_type in asking(types) for arc in _arcs(passes, pass_type, needs, ends, entries)),
        room,
        modes,
        {s: options(stage) for s, stage in enumerate(stages) if stage.saving_kinds},
        {(kind, s): amount for kind, s in saving if (amount := given_up(stages[s], kind))},
        {(kind, s): ((moved[s], MemoryChange(*change_elsewhere(stages[s], kind))),) for s in moved for kind in COPIES},
        hosts,
        {pass_type: passes.numbers(*pass_type) for pass_type in types},
        dict(_blocks(passes)),
        scale,
        device_of,
        {
            (kind, s): amount
            for kind, s in types
            if any(stages[s].until_end) and (amount := stages[s].until_end.until_end(kind))
        },
    )


def _occupied(passes: Dependencies, device: DeviceId, task: TaskSpec) -> tuple[Resource, ...]:
    """Return the resources that a task of a stage of this device occupies, its own stream first."""
    if task.also or passes.resources.shared_streams:
        return passes.resources.occupied(device, task)
    return (Resource(device, task.stream),)


def _blocks(passes: Dependencies) -> Iterator[tuple[tuple[StageId, StageId], Ticks]]:
    """Yield the stages of a forward and of a backward that may run as one block, with its ticks."""
    for here in passes.placement.stages_of:
        for pair in product(here, here):
            forward, backward = (passes.stages[stage] for stage in pair)
            ticks = forward.block_with(backward)
            if ticks is not None:
                yield pair, ticks


def _arcs(
    passes: Dependencies,
    after: PassType,
    needs: Mapping[PassType, Sequence[Need]],
    ends_of: Mapping[PassType, tuple[TaskPart, ...]],
    entries: Mapping[PassType, TaskPart],
) -> Iterator[Arc]:
    """Yield the arcs into the tasks of a pass: from the passes it needs into its first task, and from each task to the
    next. By type of pass `needs` are the passes that it waits for, `ends_of` the indices of the tasks that end it, and
    `entries`, of F, B and BW, that of the first task that waits.

    In F, B and BW the needs apply to the first task that needs an input; a task that receives waits for its sender
    only, the next one for all else. Tasks of W are independent: each waits for its own part of B.
    """
    own = passes.tasks[after]
    apart = after[0] is W
    entry = entries.get(after, 0)
    receives = own[entry].receives
    for alternatives, lag, optional, share, bucket in needs[after]:
        sent = passes.resources.transfer_stream is not None and passes.resources.sends(lag)
        begin = entry + (receives and (share is not None or alternatives[0][1] == after[1]))
        before = [one for one in alternatives if one in ends_of]
        ends = [(one, passes.ends_of(*one, bucket) if bucket else ends_of[one]) for one in before]
        for part, task in enumerate(own if apart else own[begin : begin + 1], 0 if apart else begin):
            # Of passes that end with several tasks each of these is waited for.
            for n in range(max(len(parts) for _, parts in ends)):
                senders = tuple(
                    TaskType(*one, parts[min(n, len(parts) - 1)] + sent if task.after is None else task.after)
                    for one, parts in ends
                )
                yield Arc(TaskType(*after, part), senders, 0 if sent else lag, optional, share)
    for part in range(1, 0 if apart else len(own)):
        yield Arc(TaskType(*after, part), (TaskType(*after, part - 1),), 0)
