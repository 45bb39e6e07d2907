"""Content of pictures of streams: the tasks of every stream, the row of micro-batches, and the start of phases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pipesched.deadline import SHORT, asking
from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.pass_names import microbatch_number
from pipesched.problem.passes import BW, OFFLOAD, RELOAD, B, F, Pass, PassKind, Task, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, Ticks
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.drawing.colours import COMMUNICATION, NAMES, RGB, TRANSFER, shade, shade_names, shade_numbers
from pipesched.schedule.timeline import Timeline

# A row is 1 high: white space below its lanes, and how high the row of micro-batches is against a lane.
GAP = 0.16
NUMBERS = 0.8
# Of a lane, the part at its bottom that tells of what pass a task is, or what is on its way to another device.
STRIP = 0.2

# The top and bottom of each stream's lane in its device's row; under None those of the row of micro-batches.
Lanes = Mapping[str | None, tuple[float, float]]
Colours = Mapping[tuple[PassKind, int], tuple[RGB, str]]
_COPIES = {OFFLOAD: "offload", RELOAD: "onload"}
# What the legend says of the colours, in its order.
KINDS = {**NAMES, OFFLOAD: "Offload: copy out", RELOAD: "Onload: copy back"}
MEANINGS = (*dict.fromkeys(KINDS.values()), "Dispatch, combine (other streams)", "Transfer to another device")
_OTHER_STREAMS, _TRANSFERS = MEANINGS[-2:]


class Drawn(NamedTuple):
    """A rectangle in ticks and device rows, with the `meaning` of its colour for the legend, a number and a name.

    The row of device d is from d to d + 1. The number and the name may be empty.
    """

    start: Ticks
    end: Ticks
    top: float
    bottom: float
    colour: RGB
    meaning: str
    number: str = ""
    name: str = ""


class Phases(NamedTuple):
    """The phases of a device, in ticks: start, start of its steady state, start of its cool-down, and end."""

    begin: Ticks
    steady: Ticks
    cool_down: Ticks
    end: Ticks


def colours_of(problem: Problem) -> Colours:
    """Return the colour of each kind of pass of each stage, as in the Gantt chart, and its meaning."""
    numbers, count = shade_numbers(problem), len(shade_names(problem))
    return {
        (kind, stage): (shade(kind, number, count), text)
        for kind, text in KINDS.items()
        for stage, number in enumerate(numbers)
    }


def lanes(problem: Problem) -> Lanes:
    """Return by stream (top, bottom) of its lane in a device's row of height 1, and under None those of micro-batches.

    If passes are single tasks, the number of the micro-batch is in the box, and None is missing.
    """
    streams, numbered = problem.streams, not problem.network.one_task_each
    unit = (1 - GAP) / (len(streams) + NUMBERS * numbered)
    tops = [GAP / 2 + unit * number for number in range(len(streams) + 1)]
    found: dict[str | None, tuple[float, float]] = {
        stream: (top, top + 0.94 * unit) for stream, top in zip(streams, tops, strict=False)
    }
    if numbered:
        found[None] = tops[-1], tops[-1] + NUMBERS * unit
    return found


def boxes_of(timeline: Timeline, where: Lanes) -> Iterator[Drawn]:
    """Yield the rectangles of every device: tasks, tensors sent to other devices, and the row of micro-batches."""
    colours = colours_of(timeline.problem)
    for device, order in enumerate(timeline.schedule.orders):
        for slot in asking(order, SHORT):
            for half, p in enumerate(slot):
                if timeline.in_block(p):
                    yield _half_block(timeline, p, where, half, colours)
                else:
                    for task, part in timeline.problem.tasks(p):
                        yield from _task(timeline, task, part, (device, part.stream), where, colours)
                yield from _in_transfer(timeline, p, where)
        for one in timeline.elsewhere.get(device, ()):
            yield from _task(timeline, one.task, one.part, (device, one.stream), where, colours)
        yield from _microbatches(timeline, device, where, colours)


def _number(problem: Problem, p: Pass) -> str:
    return str(microbatch_number(problem, p))


def _half_block(timeline: Timeline, p: Pass, where: Lanes, half: int, colours: Colours) -> Drawn:
    top, bottom = where[timeline.problem.streams[0]]
    upper = timeline.problem.device(p) + top + half * (bottom - top) / 2
    ends = timeline.start(p), timeline.end(p)
    return Drawn(*ends, upper, upper + (bottom - top) / 2, *colours[p.kind, p.stage], _number(timeline.problem, p))


def _task(
    timeline: Timeline, task: Task, part: TaskSpec, on: tuple[int, str], where: Lanes, colours: Colours
) -> Iterator[Drawn]:
    """Yield the rectangle of a task in the lane of `on`, the device and stream on which it runs.

    Communication has a colour of its own, and a strip at its bottom in the colour of its pass.
    """
    problem, p, (device, stream) = timeline.problem, task.of, on
    top, bottom = (device + edge for edge in where[stream])
    start = timeline.starts[task]
    on_other_stream, sends = stream != problem.streams[0], part.name == SENDING
    copies = p.kind not in (F, B, W, BW)
    own, name = colours[p.kind, p.stage], _COPIES.get(p.kind, "" if sends else part.name)
    colour = own
    if sends:
        colour = TRANSFER, _TRANSFERS
    elif on_other_stream and not copies:
        colour = COMMUNICATION, _OTHER_STREAMS
    yield Drawn(start, start + part.ticks, top, bottom, *colour, _number(problem, p), name)
    if (on_other_stream or sends) and not copies:
        yield Drawn(start, start + part.ticks, bottom - STRIP * (bottom - top), bottom, *own)


def _in_transfer(timeline: Timeline, p: Pass, where: Lanes) -> Iterator[Drawn]:
    """Yield a strip in the second stream's lane for a tensor in transfer to another device that occupies no stream."""
    problem, walk = timeline.problem, timeline.problem.placement
    to = walk.next[p.stage] if p.kind is F else walk.previous[p.stage] if p.kind in (B, BW) else None
    lag = 0 if to is None else problem.lag(p.stage, to)
    if lag and not problem.resources.sends(lag) and len(problem.streams) > 1:
        top, bottom = (problem.device(p) + edge for edge in where[problem.streams[1]])
        end = timeline.end(p)
        yield Drawn(end, end + lag, bottom - STRIP * (bottom - top), bottom, TRANSFER, _TRANSFERS)


def _microbatches(timeline: Timeline, device: DeviceId, where: Lanes, colours: Colours) -> Iterator[Drawn]:
    """Yield the boxes of a device's row of micro-batches, if `where` has one: forwards above backwards.

    A box ends where the next one of its kind begins, if that is earlier than the end of its pass.
    """
    if None not in where:
        return
    top, bottom = (device + edge for edge in where[None])
    middle = (top + bottom) / 2
    passes = timeline.schedule.passes_on(device)
    for kinds, upper, lower in (((F,), top, middle), ((B, BW), middle, bottom)):
        found = sorted((timeline.start(p), p) for p in asking(passes, SHORT) if p.kind in kinds)
        begins = [start for start, _ in found[1:]]
        ends = [*begins, *[10**30] * (len(found) > 0)]
        for (start, p), until in asking(zip(found, ends, strict=True), SHORT):
            number = _number(timeline.problem, p)
            yield Drawn(start, min(timeline.end(p), until), upper, lower, *colours[p.kind, p.stage], number)


def phases(timeline: Timeline, device: DeviceId) -> Phases | None:
    """Return the phases of a device, in ticks; None if it has no steady state.

    Warm-up lasts until the start of the first backward, the steady state until the end of the last forward.
    """
    passes: Sequence[Pass] = timeline.schedule.passes_on(device)
    starts = [timeline.start(p) for p in asking(passes, SHORT) if p.kind in (B, BW)]
    ends = [timeline.end(p) for p in asking(passes, SHORT) if p.kind is F]
    if not starts or not ends or min(starts) >= max(ends):
        return None
    begin = min(timeline.start(p) for p in asking(passes, SHORT))
    end = max(timeline.end(p) for p in asking(passes, SHORT))
    return Phases(begin, min(starts), max(ends), end)
