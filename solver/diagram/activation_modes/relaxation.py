"""What a problem is relaxed to: how the activations of some stages are held, and when the passes there run.

On each kept stage micro-batches exchange names by the order in which they run, those that are held in the same way
among themselves: memory holds as much at every instant, and what they wait for is still before them. So a state of an
order says of each stage how many forwards have begun, and of each way how many are in flight, and how far they are.
A stage that is left out is a delay, as in `solver.diagram.steps`; there an activation is recomputed in no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.problem.passes import OFFLOAD, PassKind
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage
from solver.bounds.analytic.critical_paths import Paths, durations
from solver.diagram.modelled_stages import by_chain, devices_of


class Step(NamedTuple):
    """Between forward and backward: the stream that runs it, its ticks, and the memory that it takes as it starts.

    What takes no time on no stream is the end of the step before, at which memory is given back.
    """

    stream: int | None
    ticks: int
    takes: int


class Way(NamedTuple):
    """A way to hold the activations of a kept stage: what stays behind the forward, and the steps until the backward.

    `timed` where a step runs on another stream than the passes do, so that its end has to be known.
    """

    stage: int
    stays: int
    steps: tuple[Step, ...]
    timed: bool


class ModelledStage(NamedTuple):
    """A stage's device, which has the number of its stream, its ticks, its memory, and where its chain leads.

    `before` and `behind` are the kept stages next to it on its chain; `comes` the ticks from the end of the forward
    before, or until the first one of all; `back` those from the end of a gradient to the one on the stage before, or to
    the end of what counts, None where nothing does; `turns` those from a forward to its gradient.
    """

    device: int
    forward: int
    gradient: int
    later: int
    activation: int
    microbatches: int
    before: int | None
    behind: int | None
    comes: int
    back: int | None
    turns: int
    tail: int


class ModelledDevice(NamedTuple):
    """Room for activations, None without a limit; the least that a weight pass holds, and the longest one.

    Whether the end of its work counts, and how long after its last gradient what counts ends at least (`tail`).
    """

    room: int | None
    waiting: int
    longest: int
    counts: bool
    tail: int


class ModeRelaxation(NamedTuple):
    """Kept stages with their ways, by kept device what it has, and how many streams, those of passes first."""

    stages: tuple[ModelledStage, ...]
    ways: tuple[Way, ...]
    devices: tuple[ModelledDevice, ...]
    streams: int


def relaxation_of(problem: Problem, paths: Paths, stages: Sequence[int], owner: int | None) -> ModeRelaxation:
    """Of stages chain by chain, in the order of each; the `paths` are of the problem that keeps all activations.

    Of a span the time of the `owner` counts, from its first kept pass on, or from the first forward of a chain that
    begins there.
    """
    where, devices = problem.placement.stage_device, devices_of(problem, stages)
    chains = by_chain(problem, stages)
    streams: dict[tuple[int, str | None], int] = {(device, None): n for n, device in enumerate(devices)}
    kept, ways = list[ModelledStage](), list[Way]()
    for own in chains:
        since = len(kept)
        for place, number in enumerate(own):
            at = len(kept)
            kept.append(_kept_stage(problem, paths, own, place, since, devices, owner))
            ways += _ways(problem.stages[number], at, where[number], kept[at].device, streams)
    here = [[number for number in stages if where[number] == device] for device in devices]
    rooms = [_kept_device(problem, paths, own, owner) for own in here]
    return ModeRelaxation(tuple(kept), tuple(ways), tuple(rooms), len(streams))


def _kept_stage(
    problem: Problem,
    paths: Paths,
    own: Sequence[int],
    place: int,
    since: int,
    devices: Sequence[int],
    owner: int | None,
) -> ModelledStage:
    stage, device = own[place], problem.placement.stage_device[own[place]]
    forward, gradient, whole = durations(problem, stage, ())
    before, behind = own[place - 1] if place else None, own[place + 1] if place + 1 < len(own) else None
    tail = paths.tail(stage)
    back: int | None
    if before is not None:
        comes = paths.head[stage] - paths.head[before] - paths.forward[before]
        back = paths.back[stage] - paths.back[before] - paths.gradient[before]
    else:
        comes, back = (0 if owner is not None else paths.head[stage]), (None if owner is not None else tail)
    return ModelledStage(
        device=devices.index(device),
        forward=forward,
        gradient=gradient,
        later=whole - gradient,
        activation=problem.stages[stage].activation,
        microbatches=len(problem.microbatches_of[stage]),
        before=None if before is None else since + place - 1,
        behind=None if behind is None else since + place + 1,
        comes=comes,
        back=back,
        turns=paths.round_trip[stage],
        tail=0 if owner is not None else tail,
    )


def _kept_device(problem: Problem, paths: Paths, stages: Sequence[int], owner: int | None) -> ModelledDevice:
    own, device = [problem.stages[stage] for stage in stages], problem.placement.stage_device[stages[0]]
    waiting = min(stage.activation - (stage.freed if problem.splittable else 0) for stage in own)
    later = [whole - gradient for _, gradient, whole in (durations(problem, stage, ()) for stage in stages)]
    tail = min(map(paths.tail, stages)) if owner is None else 0
    return ModelledDevice(problem.room[device], waiting, max(later), owner in (None, device), tail)


def _ways(stage: Stage, at: int, device: int, compute: int, streams: dict[tuple[int, str | None], int]) -> list[Way]:
    """Each way that the stage has; streams that are met first get a number."""

    def on(name: str) -> int:
        return compute if name == stage.stream else streams.setdefault((device, name), len(streams))

    found = list[Way]()
    for way, (keeps, moves) in stage.held_until_backward.items():
        if way is None:
            found.append(Way(at, stage.activation, (), False))
        elif way is OFFLOAD and stage.offload is not None:
            out, back = stage.offload.out_ticks, stage.offload.in_ticks
            steps = (
                Step(on(stage.offload.out_stream), out, 0),
                Step(None, 0, -moves),
                Step(on(stage.offload.in_stream), back, moves),
            )
            found.append(Way(at, stage.activation, steps, True))
        else:
            again = Step(compute, _ticks(stage, way), stage.activation - keeps)
            found.append(Way(at, keeps, (again,), False))
    return found


def _ticks(stage: Stage, way: PassKind) -> int:
    return sum(task.ticks for task in stage.tasks_of(way))
