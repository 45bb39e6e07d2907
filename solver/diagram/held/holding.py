"""What a problem is relaxed to: how the activations of one device's stages are held, and when the passes there run.

On each kept stage micro-batches exchange names by the order in which they run, those that are held in the same way
among themselves: memory holds as much at every instant, and what they wait for is still before them. So a state of an
order says of each stage how many forwards have begun, and of each way how many are in flight, and how far they are.
A stage that is left out is a delay, as in `solver.diagram.steps`; there an activation is recomputed in no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.problem.passes import OFFLOAD, PassKind
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.stage import Stage
from solver.bounds.analytic.critical_paths import Paths, durations
from solver.diagram.kept_stages import by_chain

# The stream of the passes.
COMPUTE = 0


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


class KeptStage(NamedTuple):
    """A stage's ticks, its memory, and where its chain leads.

    `before` and `behind` are the kept stages next to it on its chain; `comes` the ticks from the end of the forward
    before, or until the first one of all; `back` those from the end of a gradient to the one on the stage before, or to
    the end of what counts, None where nothing does; `turns` those from a forward to its gradient.
    """

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


class Holding(NamedTuple):
    """The kept stages of a device with their ways, and how many streams.

    `room` for activations, None without a limit; `waiting` is the least that a weight pass holds that is put off, and
    `longest` the longest of them. What counts ends so long (`tail`) after the last gradient at least.
    """

    stages: tuple[KeptStage, ...]
    ways: tuple[Way, ...]
    streams: int
    room: int | None
    waiting: int
    longest: int
    tail: int


def holding_of(problem: Problem, paths: Paths, stages: Sequence[int]) -> Holding:
    """Of stages of one device, chain by chain; the `paths` are of the problem that keeps all activations.

    Of a span the time of the device counts, from its first pass on.
    """
    streams: dict[str, int] = {problem.stages[stages[0]].stream: COMPUTE}
    kept, ways = list[KeptStage](), list[Way]()
    for own in by_chain(problem, stages):
        for place, stage in enumerate(own):
            ways += _ways(problem.stages[stage], len(kept), streams)
            kept.append(_kept_stage(problem, paths, own, place, len(kept)))
    every, ends = [problem.stages[stage] for stage in stages], problem.objective is Objective.MAKESPAN
    return Holding(
        stages=tuple(kept),
        ways=tuple(ways),
        streams=len(streams),
        room=problem.room[problem.placement.stage_device[stages[0]]],
        waiting=min(stage.activation - (stage.freed if problem.splittable else 0) for stage in every),
        longest=max(stage.later for stage in kept),
        tail=min(map(paths.tail, stages)) if ends else 0,
    )


def _kept_stage(problem: Problem, paths: Paths, own: Sequence[int], place: int, number: int) -> KeptStage:
    """The stage at a place of its chain's kept ones, of all the one of this number."""
    stage, ends = own[place], problem.objective is Objective.MAKESPAN
    forward, gradient, whole = durations(problem, stage, ())
    tail = paths.tail(stage) if ends else 0
    back: int | None
    if place:
        before = own[place - 1]
        comes = paths.head[stage] - paths.head[before] - paths.forward[before]
        back = paths.back[stage] - paths.back[before] - paths.gradient[before]
    else:
        comes, back = (paths.head[stage], tail) if ends else (0, None)
    return KeptStage(
        forward=forward,
        gradient=gradient,
        later=whole - gradient,
        activation=problem.stages[stage].activation,
        microbatches=len(problem.microbatches_of[stage]),
        before=number - 1 if place else None,
        behind=number + 1 if place + 1 < len(own) else None,
        comes=comes,
        back=back,
        turns=paths.round_trip[stage],
        tail=tail,
    )


def _ways(stage: Stage, at: int, streams: dict[str, int]) -> Iterator[Way]:
    """Each way that the stage has; streams that are met first get a number."""

    def on(name: str) -> int:
        return streams.setdefault(name, len(streams))

    for way, (keeps, moves) in stage.held_until_backward.items():
        if way is None:
            yield Way(at, stage.activation, (), False)
        elif way is OFFLOAD and stage.offload is not None:
            out, back = stage.offload.out_ticks, stage.offload.in_ticks
            steps = (
                Step(on(stage.offload.out_stream), out, 0),
                Step(None, 0, -moves),
                Step(on(stage.offload.in_stream), back, moves),
            )
            yield Way(at, stage.activation, steps, True)
        else:
            yield Way(at, keeps, (Step(COMPUTE, _ticks(stage, way), stage.activation - keeps),), False)


def _ticks(stage: Stage, way: PassKind) -> int:
    return sum(task.ticks for task in stage.tasks_of(way))
