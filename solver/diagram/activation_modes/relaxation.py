"""Relaxation for activation modes: modes of the activations of some (modelled) stages, and orders of passes there.

On each modelled stage, micro-batches of the same mode may exchange their numbers so that they run in order: the memory
level is the same at every instant, and their predecessors are still earlier. So the state of a partial order has for
each stage the number of forwards begun, and for each mode the number of micro-batches in flight and the steps they have
done. A stage that is not modelled is a delay, as in `solver.diagram.steps`; its activation is recomputed in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from pipesched.problem.passes import OFFLOAD, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId, Ticks
from pipesched.problem.stage import Stage
from solver.bounds.analytic.critical_paths import Paths, durations
from solver.diagram.modelled_stages import by_chain, devices_of

# Indices in `ModeRelaxation.stages`, `.modes` and `.devices`, whose stages and devices are the modelled ones.
ModelledStageId: TypeAlias = int
ModeId: TypeAlias = int
ModelledDeviceId: TypeAlias = int
# A stream of a modelled device, from 0 over all of them; the compute stream of a device has the device's number.
StreamId: TypeAlias = int


class ActivationStep(NamedTuple):
    """A step of an activation between forward and backward: its stream, ticks, and memory allocated at its start.

    `stream` is a number of `ModeRelaxation`. A step whose stream is None takes no time: it is the end of the step
    before, at which memory is freed (`takes` negative).
    """

    stream: StreamId | None
    ticks: Ticks
    takes: MemorySteps


class StageMode(NamedTuple):
    """A mode (kept, offloaded or recomputed) that an activation of a modelled stage may have.

    `stage` is the index of the modelled stage, `stays` the memory of an activation after its forward, `steps` the
    copies or recomputations before its backward. `timed`: True if a step runs on another stream than the passes, so
    that its end must be tracked.
    """

    stage: ModelledStageId
    stays: MemorySteps
    steps: tuple[ActivationStep, ...]
    timed: bool


class ModelledStage(NamedTuple):
    """A modelled stage: its device, ticks, memory, and neighbours.

    The device is an index among the modelled ones, and the number of its stream. `later` are the ticks of a backward
    after its gradient pass; `activation` is the memory of one of its `microbatches`. `predecessor` and `successor` are
    the indices of the modelled stages before and after it on its chain, None at the ends. `arrival_lag`: ticks from the
    end of the previous modelled stage's forward to the earliest start of the forward here, or, without one, from time
    0. `back`: ticks from the end of a gradient pass to the start of that on the previous modelled stage, or, without
    one, to the end of the objective; None if that does not count. `round_trip`: ticks from the end of a forward to its
    gradient pass. `tail`: ticks from the end of a gradient pass to the end of the objective.
    """

    device: ModelledDeviceId
    forward: Ticks
    gradient: Ticks
    later: Ticks
    activation: MemorySteps
    microbatches: int
    predecessor: ModelledStageId | None
    successor: ModelledStageId | None
    arrival_lag: Ticks
    back: Ticks | None
    round_trip: Ticks
    tail: Ticks


class ModelledDevice(NamedTuple):
    """Memory of a modelled device, and how its work counts in the objective.

    `room`: memory for activations, None without a limit. `waiting`: least memory of a pending weight pass; `longest`:
    the longest one in ticks. `counts`: True if the end of its work is part of the objective; `tail`: least ticks from
    its last gradient pass to the end of the objective.
    """

    room: MemorySteps | None
    waiting: MemorySteps
    longest: Ticks
    counts: bool
    tail: Ticks


class ModeRelaxation(NamedTuple):
    """Modelled stages with their modes, modelled devices, and the number of streams (compute streams first)."""

    stages: tuple[ModelledStage, ...]
    modes: tuple[StageMode, ...]
    devices: tuple[ModelledDevice, ...]
    streams: int


def mode_relaxation(
    problem: Problem, paths: Paths, stages: Sequence[StageId], owner: DeviceId | None
) -> ModeRelaxation:
    """Return the relaxation in which only `stages` are modelled, chain by chain in chain order; all others are delays.

    `paths` are the least times in the problem in which all activations are kept. With `owner` the span of that device
    is bounded: time counts from its first modelled pass, or from the first forward of a chain that begins on it. With
    `owner` None it is the makespan.
    """
    where, devices = problem.placement.stage_device, devices_of(problem, stages)
    chains = by_chain(problem, stages)
    streams: dict[tuple[int, str | None], int] = {(device, None): n for n, device in enumerate(devices)}
    kept, modes = list[ModelledStage](), list[StageMode]()
    for own in chains:
        since = len(kept)
        for place, number in enumerate(own):
            at = len(kept)
            kept.append(_kept_stage(problem, paths, own, place, since, devices, owner))
            modes += _modes(problem.stages[number], at, where[number], kept[at].device, streams)
    here = [[number for number in stages if where[number] == device] for device in devices]
    rooms = [_kept_device(problem, paths, own, owner) for own in here]
    return ModeRelaxation(tuple(kept), tuple(modes), tuple(rooms), len(streams))


def _kept_stage(
    problem: Problem,
    paths: Paths,
    stages: Sequence[StageId],
    place: int,
    since: ModelledStageId,
    devices: Sequence[DeviceId],
    owner: DeviceId | None,
) -> ModelledStage:
    stage, device = stages[place], problem.placement.stage_device[stages[place]]
    forward, gradient, whole = durations(problem, stage, ())
    predecessor, successor = (
        stages[place - 1] if place else None,
        stages[place + 1] if place + 1 < len(stages) else None,
    )
    tail = paths.tail(stage)
    back: int | None
    if predecessor is not None:
        arrival_lag = paths.head[stage] - paths.head[predecessor] - paths.forward[predecessor]
        back = paths.back[stage] - paths.back[predecessor] - paths.gradient[predecessor]
    else:
        arrival_lag, back = (0 if owner is not None else paths.head[stage]), (None if owner is not None else tail)
    return ModelledStage(
        device=devices.index(device),
        forward=forward,
        gradient=gradient,
        later=whole - gradient,
        activation=problem.stages[stage].activation,
        microbatches=len(problem.microbatches_of[stage]),
        predecessor=None if predecessor is None else since + place - 1,
        successor=None if successor is None else since + place + 1,
        arrival_lag=arrival_lag,
        back=back,
        round_trip=paths.round_trip[stage],
        tail=0 if owner is not None else tail,
    )


def _kept_device(problem: Problem, paths: Paths, stages: Sequence[StageId], owner: DeviceId | None) -> ModelledDevice:
    device = problem.placement.stage_device[stages[0]]
    waiting = min(problem.network.memory_until_last[stage] for stage in stages)
    later = [whole - gradient for _, gradient, whole in (durations(problem, stage, ()) for stage in stages)]
    tail = min(map(paths.tail, stages)) if owner is None else 0
    return ModelledDevice(problem.room[device], waiting, max(later), owner in (None, device), tail)


def _modes(
    stage: Stage,
    at: ModelledStageId,
    device: DeviceId,
    compute: StreamId,
    streams: dict[tuple[DeviceId, str | None], StreamId],
) -> list[StageMode]:
    """Return the modes of a stage's activations; `at` is the stage's index among the modelled ones.

    `device` is the number of its device in the problem, `compute` that of its compute stream. `streams` numbers the
    streams by device and name; those of copies that are not in it yet are added.
    """

    def on(name: str) -> StreamId:
        return compute if name == stage.stream else streams.setdefault((device, name), len(streams))

    found = list[StageMode]()
    for mode, (keeps, moves) in stage.memory_until_backward.items():
        if mode is None:
            found.append(StageMode(at, stage.activation, (), False))
        elif mode is OFFLOAD and stage.offload is not None:
            out, back = stage.offload.out_ticks, stage.offload.in_ticks
            steps = (
                ActivationStep(on(stage.offload.out_stream), out, 0),
                ActivationStep(None, 0, -moves),
                ActivationStep(on(stage.offload.in_stream), back, moves),
            )
            found.append(StageMode(at, stage.activation, steps, True))
        else:
            again = ActivationStep(compute, _ticks(stage, mode), stage.activation - keeps)
            found.append(StageMode(at, keeps, (again,), False))
    return found


def _ticks(stage: Stage, mode: PassKind) -> Ticks:
    return sum(task.ticks for task in stage.tasks_of(mode))
