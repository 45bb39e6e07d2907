"""Tasks, precedences and memory of passes, stated for the validator alone, which shares no code with what it checks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import (
    BW,
    OFFLOAD,
    ONCE,
    RECOMPUTATIONS,
    RELOAD,
    RESHARD,
    UNSHARD,
    B,
    F,
    Pass,
    PassKind,
    W,
)
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MicrobatchId, StageId, TaskPart, Ticks
from pipesched.problem.stage import TaskSpec, gradient_lag
from pipesched.schedule.pass_table import Ints, Whole, whole
from pipesched.schedule.schedule import Schedule


def own_tasks(problem: Problem, kind: PassKind, stage: StageId) -> tuple[TaskSpec, ...]:
    """Return the tasks of a pass, without the task that sends its tensor to another device."""
    return problem.stages[stage].tasks_of(kind)


def all_tasks(problem: Problem, kind: PassKind, stage: StageId) -> tuple[TaskSpec, ...]:
    """Return the tasks of a pass, including the one that sends its tensor if transfers occupy a stream."""
    own, stream = own_tasks(problem, kind, stage), problem.resources.transfer_stream
    if stream is None or kind not in (F, B, BW):
        return own
    chain = next(chain for chain in problem.placement.chains if stage in chain)
    place = chain.index(stage) + (1 if kind is F else -1)
    if not 0 <= place < len(chain):
        return own
    ticks = _travel(problem, stage, chain[place], kind is not F)
    return (*own, TaskSpec(stream, ticks, "transfer")) if ticks else own


def needed(problem: Problem, kind: PassKind, stage: StageId) -> Iterator[tuple[PassKind, StageId, Ticks]]:
    """Yield the passes of the same micro-batch that must have ended before a pass starts: (kind, stage, lag in ticks).

    Lags are without factors of micro-batches. Where two kinds may send the gradient, both are yielded, and a schedule
    contains one of them. Of the kinds that restore an activation it contains at most one.
    """
    where = problem.placement
    chain = next(chain for chain in where.chains if stage in chain)
    place = chain.index(stage)
    if kind is W:
        yield B, stage, 0
    if kind is RELOAD:
        yield OFFLOAD, stage, 0
    if kind in (B, BW) or kind is OFFLOAD or kind in RECOMPUTATIONS:
        yield F, stage, 0
    if kind in (B, BW):
        yield from ((other, stage, 0) for saving in saving_options(problem, stage) for other in saving - {OFFLOAD})
    if kind is F and place > 0:
        yield F, chain[place - 1], _travel(problem, chain[place - 1], stage, False)
    if kind in (B, BW) and place + 1 < len(chain):
        for sender in (B, BW):
            yield sender, chain[place + 1], _travel(problem, chain[place + 1], stage, True)


def needed_of_others(problem: Problem, p: Pass) -> Iterator[tuple[Pass, Ticks]]:
    """Yield (pass, lag in ticks) for passes of other chains or micro-batches that must have ended before a pass starts.

    Where a backward may be of two kinds, both are yielded, and a schedule contains one of them. Of the passes that a
    stage runs once, the first waits for every backward for its weights (a reduction of one micro-batch for that one's
    alone), each later one for the one before, and all for those of all stages that precede them. Lags are without
    factors of micro-batches.
    """
    for before, after, backward, places, waits_for_forwards, barrier in problem.chain_arcs.arcs:
        if after == p.stage and p.kind in ((B, BW) if backward else (F,)):
            ticks = problem.stages[before].transfer if barrier else _travel(problem, before, after, backward)
            ticks = gradient_lag(problem.stages[after], ticks) if backward else ticks
            for j, i in waiting_pairs(problem, before, after, backward, places):
                if i == p.microbatch:
                    kinds = (B, BW) if backward and not waits_for_forwards else (F,)
                    yield from ((Pass(kind, before, j), ticks) for kind in kinds)
    if p.kind not in ONCE:
        return
    if of_all(problem, p):
        yield from ((before, 0) for before in _of_every_stage(problem, p))
        return
    line = run_once(problem, p.stage)
    yield from ((before, 0) for before in _of_all_stages(problem, p))
    if each_microbatch(problem, p):
        yield from ((Pass(kind, p.stage, problem.microbatches_of[p.stage][p.microbatch]), 0) for kind in (W, BW))
        return
    if line and each_microbatch(problem, line[0]):
        first = problem.stages[p.stage].once[1].kind
        yield from ((before, 0) for before in line if p.kind is first and each_microbatch(problem, before))
        line = [one for one in line if not each_microbatch(problem, one)]
        yield from ((before, 0) for before, after in pairwise(line) if after == p)
        return
    yield from ((before, 0) for before, after in pairwise(line) if after == p)
    if not line or line[0].kind is p.kind:
        for stage, walked in enumerate(problem.microbatches_of):
            if p.stage == problem.parameters.holder(stage) and not problem.stages[stage].forward_only:
                yield from ((Pass(kind, stage, j), 0) for j in walked for kind in (W, BW))


def waiting_pairs(
    problem: Problem, before: StageId, after: StageId, backward: bool, places: tuple[int, ...]
) -> Iterator[tuple[MicrobatchId, MicrobatchId]]:
    """Yield pairs of micro-batches of stages `before` and `after`, of which the second waits for the first.

    If one stage has fewer micro-batches, each of them is paired with equally many of the other stage. `places`, if not
    empty, are the only positions that count: of the micro-batches of `after`, or with `backward` of `before`.
    """
    first, then = list(problem.microbatches_of[before]), list(problem.microbatches_of[after])
    if places and backward:
        first = [first[place] for place in places]
    elif places:
        then = [then[place] for place in places]
    count = max(len(first), len(then))
    if first and then:
        yield from ((first[n * len(first) // count], then[n * len(then) // count]) for n in range(count))


def run_once(problem: Problem, stage: StageId) -> list[Pass]:
    """Return the passes of a stage that run once an iteration, in order.

    Those in several parts are listed part by part.
    """
    walked = len(problem.microbatches_of[stage])
    return [
        Pass(one.kind, stage, part)
        for one in problem.stages[stage].once
        for part in range(walked if one.each_microbatch else one.parts)
    ]


def each_microbatch(problem: Problem, p: Pass) -> bool:
    """Return True if the pass is a reduction of one micro-batch's gradients, of which each micro-batch has one."""
    return any(one.each_microbatch and one.kind is p.kind for one in problem.stages[p.stage].once)


def of_all(problem: Problem, p: Pass) -> bool:
    """Return True for a pass that all stages wait for and that waits for all."""
    return any(one.of_all and one.kind is p.kind for one in problem.stages[p.stage].once)


def _trains(problem: Problem, stage: StageId) -> bool:
    """Return True if a stage holds parameters, and some stage that computes with them computes their gradients."""
    return any(
        problem.parameters.holder(s) == stage and not other.forward_only for s, other in enumerate(problem.stages)
    )


def _of_every_stage(problem: Problem, p: Pass) -> Iterator[Pass]:
    """Yield what a pass of all stages waits for: all that each runs once before it, and every pass for the weights."""
    for stage, walked in enumerate(problem.microbatches_of):
        if _trains(problem, stage):
            yield from (one for one in run_once(problem, stage) if _earlier(one.kind, p.kind))
            yield from _of_all_stages(problem, Pass(p.kind, stage, 0))
        if not problem.stages[stage].forward_only:
            yield from (Pass(kind, stage, j) for j in walked for kind in (W, BW))


def _of_all_stages(problem: Problem, p: Pass) -> Iterator[Pass]:
    """Yield the passes of all stages that precede a pass which its stage runs once, if the stage trains."""
    for stage, own in enumerate(problem.stages) if _trains(problem, p.stage) else ():
        yield from (Pass(one.kind, stage, 0) for one in own.once if one.of_all and _earlier(one.kind, p.kind))


def _earlier(one: PassKind, other: PassKind) -> bool:
    """Return True if of kinds that run once the first one precedes the second one."""
    kinds = [*PassKind]
    return kinds.index(one) < kinds.index(other)


def waited_for(problem: Problem, p: Pass, other: Pass) -> range:
    """Return the indices of the tasks of pass `other` that must have ended before `p` starts.

    It is its last task, or all tasks of a W. For one of several buckets only the gradients of its share of the weights
    must be complete.
    """
    tasks = len(own_tasks(problem, other.kind, other.stage))
    until, since = tasks, 0
    if p.kind in ONCE and other.kind in (W, BW) and not each_microbatch(problem, p):
        buckets = sum(one.kind is p.kind for one in run_once(problem, p.stage)) or 1
        # Rounded outwards: a task that is partly of the bucket must have ended.
        since = tasks * p.microbatch // buckets
        until = (tasks * (p.microbatch + 1) + buckets - 1) // buckets
    return range(since if other.kind is W else until - 1, until)


def needs_input(problem: Problem, kind: PassKind, stage: StageId) -> TaskPart:
    """Return the index of the task of a pass that waits for its inputs.

    In F, B and BW it is the first that needs other passes, else 0.
    """
    tasks = own_tasks(problem, kind, stage) if kind in (F, B, BW) else ()
    return next((part for part, task in enumerate(tasks) if task.needs_input), 0)


def receives(problem: Problem, kind: PassKind, stage: StageId) -> bool:
    """Return True if a pass takes the tensor of another device by a task of its own, a blocking transfer."""
    tasks = own_tasks(problem, kind, stage)
    return kind in (F, B, BW) and tasks[needs_input(problem, kind, stage)].receives


def awaits(problem: Problem, kind: PassKind, stage: StageId, sender: StageId | None) -> TaskPart:
    """Return the index of the task of a pass that waits for a pass of stage `sender` on its chain.

    None for `sender` stands for passes of other chains. The task that receives the tensor waits for its sender alone;
    the next task waits for all others.
    """
    part = needs_input(problem, kind, stage)
    return part + (receives(problem, kind, stage) and sender in (None, stage))


def for_microbatches(problem: Problem, number: Ticks | MemorySteps, microbatches: Ints) -> Whole | int:
    """Return an array of `number`, ticks or memory, scaled for each of these micro-batches.

    The number itself if all are equal. Nothing is rounded, since the problem's ticks and steps of memory are such that
    all products are whole. `microbatches` are numbers of micro-batches.
    """
    if not problem.walks.scale:
        return number
    each = {j: int(number * problem.walks.scale[j]) for j in set(microbatches.tolist())}
    return whole([each[j] for j in microbatches.tolist()], 2 * len(microbatches) + 2)


def for_one(
    problem: Problem, changes: tuple[MemorySteps, MemorySteps], microbatch: MicrobatchId
) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory changes of a pass at its start and end, scaled for this micro-batch."""
    scale = problem.walks.scale[microbatch] if problem.walks.scale else 1
    return int(changes[0] * scale), int(changes[1] * scale)


def for_each(problem: Problem, numbers: Whole, microbatches: Ints) -> Whole:
    """Return `numbers`, ticks or memory by row, each times the factor of the row's micro-batch in `microbatches`."""
    if not problem.walks.scale:
        return numbers
    scale = problem.walks.scale
    pairs = zip(numbers.tolist(), microbatches.tolist(), strict=True)
    return whole([int(number * scale[j]) for number, j in pairs], 2 * len(numbers) + 2)


def _travel(problem: Problem, sender: StageId, receiver: StageId, back: bool) -> Ticks:
    """Return the ticks of a transfer between two stages.

    They are the ticks of the stage that is earlier on the chain, plus those of the link. With `back` it is the transfer
    of a gradient, else of an activation; 0 on one device.
    """
    here, there = problem.placement.stage_device[sender], problem.placement.stage_device[receiver]
    if here == there:
        return 0
    lower = problem.stages[receiver if back else sender]
    ticks = lower.transfer + (problem.links[here][there] if problem.links else 0)
    return gradient_lag(lower, ticks) if back else ticks


def memory_changes(problem: Problem, kind: PassKind, stage: StageId) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory taken by a pass at its start and at its end, in steps; negative if freed.

    Without factors of micro-batches, and without what an F frees at its end if it is recomputed (`dropped`).
    """
    at_start, at_end = _for_activations(problem, kind, stage)
    running, stays = passing_memory(problem, kind, stage)
    return at_start + running + stays, at_end - running


def passing_memory(problem: Problem, kind: PassKind, stage: StageId) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a pass needs while it runs, and that it keeps until the end of the iteration."""
    space, kept = problem.stages[stage].workspace, problem.stages[stage].until_end
    match kind:
        case PassKind.F:
            return space.forward, kept.forward
        case PassKind.B:
            return space.backward, kept.backward
        case PassKind.W:
            return space.weight, kept.weight
        case PassKind.BW:
            # First as B, then as W.
            return max(space.backward, space.weight), kept.backward + kept.weight
    return 0, 0


def _for_activations(problem: Problem, kind: PassKind, stage: StageId) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory of activations taken by a pass at its start and at its end; negative if freed."""
    taken, returned = problem.stages[stage].activation, problem.stages[stage].freed
    # What later pieces read stays after a piece's own backward; that of the first piece gives all of it back.
    stays, of_all = problem.stages[stage].kv_cache
    match kind:
        case PassKind.F:
            return taken + stays, 0
        case PassKind.B:
            return (0, -returned - of_all) if returned > 0 else (-returned, -of_all)
        case PassKind.W:
            return 0, returned - taken
        case PassKind.BW:
            return 0, -taken - of_all
    # Copies move memory from the device elsewhere and back; a recomputation takes what was dropped after the forward;
    # parameters take theirs while they are gathered.
    taken_there, given_there = changes_elsewhere(problem, kind, stage)
    own = problem.stages[stage].gather
    gathered = own.memory if own else 0
    return (
        dropped(problem, kind, stage) - given_there + (gathered if kind is UNSHARD else 0),
        -taken_there - (gathered if kind is RESHARD else 0),
    )


def dropped(problem: Problem, kind: PassKind, stage: StageId) -> MemorySteps:
    """Return the memory freed at the end of the forward and taken again by a recomputation of this kind.

    0 for other kinds. Factors of micro-batches are not included.
    """
    if kind not in RECOMPUTATIONS:
        return 0
    mode = problem.stages[stage].recompute[RECOMPUTATIONS.index(kind)]
    return problem.stages[stage].activation - mode.keeps


def changes_elsewhere(problem: Problem, kind: PassKind, stage: StageId) -> tuple[MemorySteps, MemorySteps]:
    """Return the memory that a copy takes where activations move to, host or device, at its start and at its end.

    OFFLOAD takes it at its start, RELOAD frees it (negative) at its end, limited or not; other kinds take 0. Factors
    of micro-batches are not included.
    """
    if kind is OFFLOAD:
        return _moved(problem, stage), 0
    return (0, -_moved(problem, stage)) if kind is RELOAD else (0, 0)


def host_changes(problem: Problem, kind: PassKind, stage: StageId) -> tuple[MemorySteps, MemorySteps]:
    """Return the host memory taken by a pass at its start and at its end.

    Negative if freed, 0 if activations move to a device. Factors of micro-batches are not included.
    """
    return (0, 0) if peer_of(problem, stage) is not None else changes_elsewhere(problem, kind, stage)


def peer_of(problem: Problem, stage: StageId) -> DeviceId | None:
    """Return the device whose memory a stage's activations move to; None where it is the host's, or none moves."""
    copies = problem.stages[stage].offload
    return copies.to if copies else None


def moves_to_devices(problem: Problem) -> bool:
    """Return True if activations of some stage may move to the memory of another device."""
    return any(peer_of(problem, stage) is not None for stage in range(len(problem.stages)))


def copies_to(schedule: Schedule, problem: Problem, device: DeviceId) -> list[Pass]:
    """Return the copies of other devices from and to the memory of a device, in any order."""
    moving = [s for s in range(len(problem.stages)) if peer_of(problem, s) == device]
    owners = dict.fromkeys(problem.placement.stage_device[s] for s in moving)
    return [
        p for owner in owners for p in schedule.passes_on(owner) if p.kind in (OFFLOAD, RELOAD) and p.stage in moving
    ]


def _moved(problem: Problem, stage: StageId) -> MemorySteps:
    """Return the memory of an activation that an offload moves; 0 for a stage that never offloads."""
    copies = problem.stages[stage].offload
    return copies.amount if copies else 0


def saving_options(problem: Problem, stage: StageId) -> list[frozenset[PassKind]]:
    """Return the allowed sets of kinds of passes of a micro-batch on a stage between forward and backward.

    The empty set keeps the activation.
    """
    own = problem.stages[stage]
    found = [frozenset[PassKind]()] if own.may_keep else []
    if own.offload is not None:
        found.append(frozenset((OFFLOAD, RELOAD)))
    return found + [frozenset((RECOMPUTATIONS[n],)) for n in range(len(own.recompute))]


def streams_besides(problem: Problem, device: DeviceId, task: TaskSpec) -> Iterator[Resource]:
    """Yield the streams that a task of this device, such as a blocking transfer, occupies in addition to its own.

    Those that devices share are given once.
    """
    seen = {(stream_owner(problem, device, task.stream), task.stream)}
    for other, stream in task.also:
        where = stream_owner(problem, other, stream), stream
        if where not in seen:
            seen.add(where)
            yield Resource(*where)


def stream_owner(problem: Problem, device: DeviceId, stream: str) -> DeviceId:
    """Return the device whose order lists a stream: the given device, or the first of those that share the stream."""
    sharing = [
        one.devices for one in problem.resources.shared_streams if one.stream == stream and device in one.devices
    ]
    return sharing[0][0] if sharing else device
