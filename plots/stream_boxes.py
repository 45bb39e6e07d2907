"""What the picture of streams shows: the tasks of every stream, the row of micro-batches, and where phases begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from pipesched.problem.network.dependencies import SENDING
from pipesched.problem.passes import BW, B, F, Pass, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.schedule.drawing.colours import RGB
from pipesched.schedule.timeline import Timeline

FORWARD: RGB = (0.42, 0.63, 0.85)
BACKWARD: RGB = (0.87, 0.42, 0.40)
WEIGHT: RGB = (0.96, 0.75, 0.70)
DISPATCH: RGB = (0.98, 0.84, 0.35)
TRANSFER: RGB = (0.46, 0.74, 0.48)
COPY: RGB = (0.70, 0.62, 0.80)
AGAIN: RGB = (0.62, 0.82, 0.83)

# A row is 1 high: white space below its lanes, and how high the row of micro-batches is against a lane.
GAP = 0.16
NUMBERS = 0.8
# Of a lane, the part at its bottom that tells of what pass a task is, or what is on its way to another device.
STRIP = 0.2


class Drawn(NamedTuple):
    """A rectangle in ticks and device rows, with a number and a name, which may be empty."""

    start: int
    end: int
    top: float
    bottom: float
    colour: RGB
    number: str = ""
    name: str = ""


class Phases(NamedTuple):
    """When a device begins, goes over to pairs of forwards and backwards, has no more forwards, and ends."""

    begin: int
    steady: int
    cool_down: int
    end: int


def colour_of(kind: PassKind) -> RGB:
    """The colour of what computes."""
    return {F: FORWARD, B: BACKWARD, BW: BACKWARD, W: WEIGHT}.get(kind, AGAIN)


def lanes(problem: Problem) -> Mapping[str | None, tuple[float, float]]:
    """The top and bottom of each stream's lane within its device's row; under None the row of micro-batches.

    A pass of one task has its number in its box, and needs no row for it.
    """
    return _lanes(problem.streams, not problem.network.one_task_each)


@cache
def _lanes(streams: tuple[str, ...], numbered: bool) -> Mapping[str | None, tuple[float, float]]:
    unit = (1 - GAP) / (len(streams) + NUMBERS * numbered)
    tops = [GAP / 2 + unit * number for number in range(len(streams) + 1)]
    found: dict[str | None, tuple[float, float]] = {
        stream: (top, top + 0.94 * unit) for stream, top in zip(streams, tops, strict=False)
    }
    if numbered:
        found[None] = tops[-1], tops[-1] + NUMBERS * unit
    return found


def boxes_of(timeline: Timeline) -> Iterator[Drawn]:
    """Every device's tasks, what travels to other devices, and the row of micro-batches."""
    for device, order in enumerate(timeline.schedule.orders):
        for slot in order:
            for half, p in enumerate(slot):
                if timeline.in_block(p):
                    yield _half_block(timeline, p, device, half)
                else:
                    yield from _tasks(timeline, p, device)
                yield from _on_its_way(timeline, p, device)
        yield from _microbatches(timeline, device)


def _half_block(timeline: Timeline, p: Pass, device: int, half: int) -> Drawn:
    top, bottom = lanes(timeline.problem)[timeline.problem.streams[0]]
    upper = device + top + half * (bottom - top) / 2
    ends = timeline.start(p), timeline.end(p)
    return Drawn(*ends, upper, upper + (bottom - top) / 2, colour_of(p.kind), str(p.microbatch))


def _tasks(timeline: Timeline, p: Pass, device: int) -> Iterator[Drawn]:
    problem = timeline.problem
    for task, part in problem.tasks(p):
        top, bottom = (device + edge for edge in lanes(problem)[part.stream])
        start = timeline.starts[task]
        colour = colour_of(p.kind)
        sends, copies = part.name == SENDING, p.kind not in (F, B, W, BW)
        if part.stream != problem.streams[0]:
            colour = TRANSFER if sends else COPY if copies else DISPATCH
        yield Drawn(start, start + part.ticks, top, bottom, colour, str(p.microbatch), "" if sends else part.name)
        if part.stream != problem.streams[0] and not copies:
            yield Drawn(start, start + part.ticks, bottom - STRIP * (bottom - top), bottom, colour_of(p.kind))


def _on_its_way(timeline: Timeline, p: Pass, device: int) -> Iterator[Drawn]:
    """A tensor that travels to another device and occupies nothing, beneath the last stream's tasks."""
    problem, where = timeline.problem, timeline.problem.placement
    to = where.next[p.stage] if p.kind is F else where.previous[p.stage] if p.kind in (B, BW) else None
    lag = 0 if to is None else problem.lag(p.stage, to)
    if lag and not problem.dependencies.sends(lag) and len(problem.streams) > 1:
        top, bottom = (device + edge for edge in lanes(problem)[problem.streams[1]])
        end = timeline.end(p)
        yield Drawn(end, end + lag, bottom - STRIP * (bottom - top), bottom, TRANSFER)


def _microbatches(timeline: Timeline, device: int) -> Iterator[Drawn]:
    """Forwards above backwards, each until the next one of its kind begins."""
    if None not in lanes(timeline.problem):
        return
    top, bottom = (device + edge for edge in lanes(timeline.problem)[None])
    middle = (top + bottom) / 2
    passes = timeline.schedule.passes_on(device)
    for kinds, upper, lower in (((F,), top, middle), ((B, BW), middle, bottom)):
        found = sorted((timeline.start(p), p) for p in passes if p.kind in kinds)
        begins = [start for start, _ in found[1:]]
        for (start, p), until in zip(found, [*begins, *[10**30] * (len(found) > 0)], strict=True):
            yield Drawn(start, min(timeline.end(p), until), upper, lower, colour_of(p.kind), str(p.microbatch))


def phases(timeline: Timeline, device: int) -> Phases | None:
    """Warm-up until the first backward, steady state until the last forward; None where one of them is missing."""
    passes: Sequence[Pass] = timeline.schedule.passes_on(device)
    starts = [timeline.start(p) for p in passes if p.kind in (B, BW)]
    ends = [timeline.end(p) for p in passes if p.kind is F]
    if not starts or not ends or min(starts) >= max(ends):
        return None
    whole = [timeline.start(p) for p in passes], [timeline.end(p) for p in passes]
    return Phases(min(whole[0]), min(starts), max(ends), max(whole[1]))
