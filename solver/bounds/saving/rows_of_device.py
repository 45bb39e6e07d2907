"""Rows of a device in a linear program.

They have what an activation in each mode needs of memory and streams, and fixed times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, PassKind
from pipesched.problem.problem import Objective, Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, MemoryTicks, StageId, Ticks
from pipesched.problem.stage import Stage
from solver.bounds.analytic.critical_paths import Paths
from solver.bounds.analytic.idle_time.knapsack import most_value

# For one activation: for each mode its need for each row, in ticks.
Needs = Mapping[PassKind | None, tuple[Fraction | int, ...]]


class Row(NamedTuple):
    """One row of the linear program, in ticks.

    It means that value >= `fixed` + total need of the resource that the text `says` names.
    """

    says: str
    fixed: Fraction | Ticks


class DeviceRows(NamedTuple):
    """The rows of a device, and by stage what one activation needs for each row."""

    rows: tuple[Row, ...]
    needs: Mapping[StageId, Needs]


class _Ends(NamedTuple):
    """Least ticks before the first forward of a device begins, and after its last gradient pass; both 0 for the span.

    `head` is before it, `tail` after it.
    """

    head: Ticks
    tail: Ticks


def rows_of_device(
    problem: Problem, objective: Objective, paths: Paths, device: DeviceId, stages: Sequence[StageId]
) -> DeviceRows:
    """Return the rows of a device in the linear program over modes of activations, one for each resource.

    The compute stream is first, then memory if limited, then copy streams in order of name. `stages` are those of the
    device.
    """
    ends = _Ends(0, 0)
    if not objective.by_device:
        ends = _Ends(min(paths.head[s] for s in stages), min(paths.tail(s) for s in stages))
    rows = [_compute(problem, paths, device, stages, ends)]
    room = _usable(problem, device, stages)
    if room is not None:
        rows.append(_memory(problem, stages, ends, room))
    copies = [own.offload for s in stages if (own := problem.stages[s]).offload]
    main = problem.stages[0].stream
    streams = sorted({name for one in copies for name in (one.out_stream, one.in_stream)} - {main})
    within = min(paths.forward[s] for s in stages) + min(paths.gradient[s] for s in stages)
    rows += [Row(f"stream {name}", ends.head + ends.tail + within) for name in streams]
    needs = {s: _needs(problem.stages[s], paths.round_trip[s], main, room, streams) for s in stages}
    return DeviceRows(tuple(rows), needs)


def _compute(problem: Problem, paths: Paths, device: DeviceId, stages: Sequence[StageId], ends: _Ends) -> Row:
    """Return the row of the compute stream: least work of all passes, and least times before and after them.

    `stages` are those of the device, `ends` the times before and after. What weight passes can run after the last
    gradient is taken off the time after it.
    """
    work = sum(paths.view.least_work(s) * len(problem.microbatches_of[s]) for s in stages)
    later = [
        (own.weight, own.activation - own.freed, len(problem.microbatches_of[s]))
        for s in stages
        if (own := problem.stages[s]).weight is not None
    ]
    put_off = most_value(later, problem.room[device])
    return Row("its time to compute", ends.head + work + max(0, ends.tail - put_off))


def _memory(problem: Problem, stages: Sequence[StageId], ends: _Ends, room: MemorySteps) -> Row:
    """Return the row of memory times time, divided by the device's memory `room`, so that it is in ticks.

    `stages` are those of the device, `ends` the times before its first forward and after its last gradient. After that
    only weight passes occupy memory, each unit of it for at most as long as the longest of them: so much is taken off
    the time after that gradient. At first forwards fill the memory one by one, so the n-th takes its own memory only
    after those before it have run.
    """
    own = [problem.stages[s] for s in stages]
    longest = max((stage.weight for stage in own if stage.weight is not None), default=0)
    most = max(stage.activation - min(0, stage.freed) for stage in own)
    shortest = min(stage.forward for stage in own)
    steps = range(1, room // most + 1) if most else ()
    forwards = sum(len(problem.microbatches_of[s]) for s in stages)
    unused = shortest * sum(room - most * n for n in steps) if len(steps) <= forwards else 0
    return Row("its memory over time", ends.head + max(0, ends.tail - longest) + Fraction(unused, room))


def _usable(problem: Problem, device: DeviceId, stages: Sequence[StageId]) -> MemorySteps | None:
    """Return the memory of a device that its passes can use at once, a multiple of the amounts' common divisor.

    `stages` are those of the device. None if its memory is unlimited, no pass takes any, or it has no room for that
    divisor.
    """
    room = problem.room[device]
    sizes: list[int] = []
    for s in stages:
        own = problem.stages[s]
        sizes += [own.activation, own.freed, *(keeps for keeps, _ in own.memory_until_backward.values())]
    if room is None or not any(sizes):
        return None
    room -= room % gcd(*sizes)
    return room if room > 0 else None


def _needs(stage: Stage, round_trip: Ticks, main: str, room: MemorySteps | None, streams: Sequence[str]) -> Needs:
    """Return what one activation of a stage needs for each row, in ticks, by mode.

    The mode is None (kept), offloaded, or recomputed. In the order of rows: compute time in addition to F and its
    backward, memory times time divided by `room` (left out if `room` is None), and time on each of the copy `streams`.
    Copies on the stream `main` count as compute time. `round_trip` is the least ticks from the end of F to the
    backward.
    """
    found: dict[PassKind | None, tuple[Fraction | int, ...]] = {}
    for mode, (keeps, _) in stage.memory_until_backward.items():
        copies = dict.fromkeys((main, *streams), 0)
        again = 0
        if mode is OFFLOAD and stage.offload:
            copies[stage.offload.out_stream] += stage.offload.out_ticks
            copies[stage.offload.in_stream] += stage.offload.in_ticks
            both = stage.offload.out_ticks + stage.offload.in_ticks
        elif mode in RECOMPUTATIONS:
            again = both = stage.recompute[RECOMPUTATIONS.index(mode)].ticks
        else:
            both = 0
        # The whole activation is in memory during forward, copies and recomputation; in between, if there is time
        # between them, only the kept part.
        waits = max(round_trip, both)
        area = stage.activation * (stage.forward + both) + keeps * (waits - both) + _area_from_backward(stage)
        memory = () if room is None else (Fraction(area, room),)
        found[mode] = (copies[main] + again, *memory, *(copies[name] for name in streams))
    return found


def _area_from_backward(stage: Stage) -> MemoryTicks:
    """Return the memory times ticks of an activation from the start of its backward on.

    The backward is split or full, whichever takes less.
    """
    fused = stage.activation * stage.fused
    if stage.weight is None:
        return fused
    split = (stage.activation - min(0, stage.freed)) * stage.backward + (stage.activation - stage.freed) * stage.weight
    return min(fused, split)
