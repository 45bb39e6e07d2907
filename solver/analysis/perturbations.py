"""Perturbations of a problem: more memory, faster links, passes or streams, work moved to a neighbouring stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipesched.problem.blocks import Blocks
from pipesched.problem.formatting import memory_amount
from pipesched.problem.passes import BW, OFFLOAD, RECOMPUTATIONS, RELOAD, UNSHARD, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, StageId, Ticks
from pipesched.problem.rescale import coarsest, finer, finer_memory
from pipesched.problem.scaled_stage import mapped_stage, numbers_of
from pipesched.problem.stage import Stage, TaskSpec
from pipesched.results.analysis.explanation import Perturbation, PerturbationKind
from solver.analysis.shared_ends import sharing_ends

# True if a task of a pass of this kind is to take a tenth less time.
_Wanted = Callable[[PassKind, TaskSpec], bool]


def changes(problem: Problem, device: DeviceId, busiest: DeviceId) -> list[Perturbation]:
    """Return the changed problems worth solving for a sensitivity analysis, the most informative first.

    `device` is the bottleneck, `busiest` the device with the most work. The changed problems may have other ticks and
    other steps of memory than `problem`.
    """
    memory = list(_more_memory(problem))
    memory.sort(key=lambda change: (change.device is not None, change.device != device))
    fine = finer_memory(finer(problem, 10), 10)  # in which tenths are whole
    moves = [move for origin in dict.fromkeys((busiest, device)) for move in _moves(fine, origin)]
    faster = [*_faster_transfer(fine), *_faster_passes(fine, device), *_faster_streams(fine)]
    return [*memory[:2], *sharing_ends(problem), *faster, *moves, *memory[2:]]


def _more_memory(problem: Problem) -> Iterator[Perturbation]:
    """Yield the problem with capacity for one more activation on all limited devices, if several, then on each of them.

    The activation is that of the device's largest stage; devices without activations are left out.
    """
    memory_in_flight, stages_of = problem.network.memory_in_flight, problem.placement.stages_of
    more = [max((memory_in_flight[s] for s in stages), default=0) for stages in stages_of]
    limited = [d for d in range(problem.devices) if problem.room[d] is not None and more[d]]

    def with_more(devices: list[DeviceId]) -> Problem:
        room = [None if c is None else c + more[d] * (d in devices) for d, c in enumerate(problem.room)]
        return problem.with_room(room)

    def sizes(devices: list[DeviceId]) -> str:
        amounts = {memory_amount(problem, more[d]) for d in devices}
        unit = problem.memory_unit
        return f" ({amounts.pop()} {unit})" if len(amounts) == 1 and unit != "activations" else ""

    if len(limited) > 1:
        text = f"one more activation on every device{sizes(limited)}"
        yield Perturbation(PerturbationKind.MEMORY, text, with_more(limited), True)
    for device in limited:
        yield Perturbation(
            PerturbationKind.MEMORY, f"one more activation on device {device}", with_more([device]), True, device
        )


def _faster_transfer(problem: Problem) -> Iterator[Perturbation]:
    if any(stage.transfer for stage in problem.stages) or any(map(any, problem.links)):
        links = tuple(tuple(lag * 9 // 10 for lag in row) for row in problem.links)
        shorter = replace(problem.with_stages(transfer=[s.transfer * 9 // 10 for s in problem.stages]), links=links)
        yield Perturbation(PerturbationKind.TRANSFER, "transfers 10 % faster", coarsest(shorter), True)


def _faster_passes(problem: Problem, device: DeviceId) -> Iterator[Perturbation]:
    """Yield the problem with one kind of pass 10 % faster on the first stream of a device, for each kind in turn."""
    words = {(F,): "forwards (F)", (B,): "backwards for the input (B)", (W,): "weight passes (W)"}
    if problem.network.gradient is BW:
        words = {(F,): "forwards (F)", (BW,): "backwards (BW)"}
    for kinds, name in (words | {RECOMPUTATIONS: "recomputations (R)"}).items():

        def wanted(kind: PassKind, task: TaskSpec, kinds: Sequence[PassKind] = kinds) -> bool:
            return kind in kinds and task.stream == problem.streams[0]

        changed = _faster(problem, wanted, problem.placement.stages_of[device])
        if changed != problem:
            text = f"{name} 10 % faster on device {device}"
            yield Perturbation(PerturbationKind.PASSES, text, coarsest(changed), True, device)


def _faster_streams(problem: Problem) -> Iterator[Perturbation]:
    """Yield the problem with all tasks of one stream 10 % faster on all devices, for each stream but the first."""
    for stream in problem.streams[1:]:

        def wanted(_kind: PassKind, task: TaskSpec, stream: str = stream) -> bool:
            return task.stream == stream

        changed = _faster(problem, wanted, range(len(problem.stages)))
        if changed != problem:
            yield Perturbation(PerturbationKind.STREAM, f"tasks on {stream} 10 % faster", coarsest(changed), True)


def _faster(problem: Problem, wanted: _Wanted, stages: Sequence[StageId]) -> Problem:
    return replace(
        problem,
        stages=tuple(_faster_stage(own, wanted) if s in stages else own for s, own in enumerate(problem.stages)),
    )


def _faster_stage(stage: Stage, wanted: _Wanted) -> Stage:
    """Return a stage with 10 % less time for each of its tasks of which `wanted(kind, task)` is True.

    What is saved is rounded down to ticks. A block is shortened by as many ticks as the tasks save, down to 0, and so
    is a full backward by those of its tasks that are the same as one of B or W. A block saves no more than its shorter
    pass takes.
    """
    passes = {kind: list(stage.tasks_of(kind)) for kind in (F, B, W, BW) if kind in stage.kinds}
    before, block = {kind: _ticks(tasks) for kind, tasks in passes.items()}, stage.blocks.ticks
    for kind, tasks in passes.items():
        for n, task in enumerate(() if kind is BW and W in passes else tuple(tasks)):
            saved = task.ticks // 10 if wanted(kind, task) else 0
            tasks[n] = task._replace(ticks=task.ticks - saved)
            block = block and max(0, block - saved)
            if kind in (B, W):
                _shorten(passes[BW], kind, task, saved)
    gain = {kind: before[kind] - _ticks(tasks) for kind, tasks in passes.items()}

    def once(kind: PassKind) -> TaskSpec:
        (task,) = stage.tasks_of(kind)
        return task._replace(ticks=task.ticks * 9 // 10) if wanted(kind, task) else task

    modes = zip(RECOMPUTATIONS, stage.recompute, strict=False)
    copies, gather = stage.offload, stage.gather
    saves = stage.blocks.saves
    return replace(
        stage,
        forward=stage.forward - gain[F],
        backward=stage.backward - gain[B if B in gain else BW],
        weight=None if stage.weight is None else stage.weight - gain[W],
        fused=stage.fused - gain[BW],
        blocks=Blocks(block, saves and min(saves, stage.forward - gain[F], stage.fused - gain[BW])),
        tasks=tuple((kind, tuple(passes[kind])) for kind, _ in stage.tasks),
        offload=copies and copies._replace(out_ticks=once(OFFLOAD).ticks, in_ticks=once(RELOAD).ticks),
        recompute=tuple(mode._replace(ticks=once(kind).ticks) for kind, mode in modes),
        gather=gather and gather._replace(task=once(UNSHARD)),
        once=tuple(one._replace(task=once(one.kind)) for one in stage.once),
    )


def _ticks(tasks: Sequence[TaskSpec]) -> Ticks:
    return sum(task.ticks for task in tasks)


def _shorten(fused: list[TaskSpec], kind: PassKind, part: TaskSpec, saved: Ticks) -> None:
    """Subtract the ticks `saved` by a task of B or W from the same task of the full backward `fused`, if it has it.

    The list `fused`, the full backward's tasks, is changed in place.
    """
    names = (f"w-{part.name}", part.name) if kind is W else (part.name,)
    same = [n for n, task in enumerate(fused) if task[:2] == part[:2] and task.name in names]
    alone = [0] if len(fused) == 1 and fused[0].stream == part.stream else []
    for n in sorted(same, key=lambda n: names.index(fused[n].name))[:1] or alone:
        fused[n] = fused[n]._replace(ticks=max(0, fused[n].ticks - saved))


def _moves(problem: Problem, device: DeviceId) -> Iterator[Perturbation]:
    """Yield the problem with 10 % of a device's largest stage moved to a neighbouring stage of its chain.

    Largest is the stage with the most work. Time and memory move. The neighbours are the stage before and the one
    after, unless they are on the same device or have other tasks. Where several chains have the same layers, their
    corresponding stages move as well.
    """
    where = problem.placement
    stages = [s for s in where.stages_of[device] if problem.microbatches_of[s]]
    if not stages:
        return
    stage = max(stages, key=problem.least_work)
    own = where.chains[where.chain_index[stage]]
    alike = next((one.chains for one in problem.chain_arcs.modules if own in one.chains), None) or [
        chain for chain in where.chains if not any(chain in one.chains for one in problem.chain_arcs.modules)
    ]
    place = own.index(stage)
    for neighbour in (where.previous[stage], where.next[stage]):
        if neighbour is None or where.stage_device[neighbour] == device:
            continue
        changed, step = list(problem.stages), 1 if neighbour == where.next[stage] else -1
        for chain in alike:
            here, there = chain[place], chain[place + step]
            if not _same_parts(changed[here], changed[there]):
                break
            changed[here], changed[there] = _moved(changed[here], changed[there])
        else:
            one, other = (s // problem.chain_arcs.pieces for s in (stage, neighbour))
            text = (
                f"10 % of stage {one}'s times and activation moved to stage {other} "
                f"(device {device} to {where.stage_device[neighbour]})"
            )
            moved = coarsest(replace(problem, stages=tuple(changed)))
            yield Perturbation(PerturbationKind.MOVE, text, moved, False, device)


def _same_parts(one: Stage, other: Stage) -> bool:
    """True if two stages consist of the same tasks, whatever their durations and memory."""
    same = (mapped_stage(replace(stage, transfer=0, static=0), lambda _: 0, lambda _: 0) for stage in (one, other))
    return next(same) == next(same)


def _moved(stage: Stage, to: Stage) -> tuple[Stage, Stage]:
    """Return both stages with a tenth, rounded down, of each time and memory amount of `stage` moved to stage `to`."""
    tenths = [[number // 10 for number in numbers] for numbers in numbers_of(stage)]
    given, taken = ([iter(numbers) for numbers in tenths] for _ in range(2))
    return (
        mapped_stage(stage, lambda ticks: ticks - next(given[0]), lambda amount: amount - next(given[1])),
        mapped_stage(to, lambda ticks: ticks + next(taken[0]), lambda amount: amount + next(taken[1])),
    )
