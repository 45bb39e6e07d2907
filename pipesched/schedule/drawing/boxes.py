"""The boxes of a Gantt chart: the rectangle of each task of a timeline, in ticks and device rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipesched.deadline import SHORT, asking
from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.passes import Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, TaskPart, Ticks
from pipesched.schedule.timeline import Timeline

# Parts of a device's row, which is 1 high: white space below its lanes, and a side lane for each compute lane.
GAP = 0.12
SIDE_LANE = 0.45


class Box(NamedTuple):
    """A rectangle of a Gantt chart: from `start` to `end` in ticks, from `top` down to `bottom` in device rows.

    The row of device d is from d to d + 1.

    It is task number `part` of the pass `of`; with `overlapped` it is all of that pass, as one half of a block. `name`
    is the name of the task, empty where the pass has no named tasks. `stream` is the stream of `device` that the task
    occupies. With `sends` the task sends the pass's tensor.
    """

    of: Pass
    device: DeviceId
    start: Ticks
    end: Ticks
    top: float
    bottom: float
    overlapped: bool = False
    name: str = ""
    part: TaskPart = 0
    stream: str = ""

    @property
    def sends(self) -> bool:
        """True for a task that transfers a pass's tensor."""
        return self.name == SENDING


def boxes_of(timeline: Timeline) -> Iterator[Box]:
    """Yield every task as a box in the lane of its stream; an overlapped block is its forward above its backward.

    A task that occupies several streams has a box on each.
    """
    lane_of = lanes(timeline.problem)
    for device, order in enumerate(timeline.schedule.orders):
        for slot in asking(order, SHORT):
            if timeline.in_block(slot[0]):
                yield from _halves(timeline, slot, device, *lane_of[timeline.problem.streams[0]])
                continue
            for p in slot:
                for task, part in timeline.problem.tasks(p):
                    start, (top, bottom) = timeline.starts[task], lane_of[part.stream]
                    edges = device + top, device + bottom
                    yield Box(p, device, start, start + part.ticks, *edges, False, part.name, task.part, part.stream)
        for one in timeline.elsewhere.get(device, ()):
            top, bottom = (device + edge for edge in lane_of[one.stream])
            named = one.part.name, one.task.part, one.stream
            yield Box(one.task.of, device, one.start, one.end, top, bottom, False, *named)


def _halves(timeline: Timeline, slot: tuple[Pass, ...], device: DeviceId, top: float, bottom: float) -> Iterator[Box]:
    half = (bottom - top) / len(slot)
    for number, p in enumerate(slot):
        upper = device + top + number * half
        stream = timeline.problem.streams[0]
        yield Box(p, device, timeline.start(p), timeline.end(p), upper, upper + half, overlapped=True, stream=stream)


def lanes(problem: Problem) -> dict[str, tuple[float, float]]:
    """Return by stream the top and bottom of its lane in a device's row: shares of the row's height, from 0 to 1."""
    shares = {stream: SIDE_LANE if number else 1.0 for number, stream in enumerate(problem.streams)}
    unit = (1 - GAP) / sum(shares.values())
    lane_of, top = {}, GAP / 2
    for stream, share in shares.items():
        lane_of[stream] = (top, top + share * unit)
        top += share * unit
    return lane_of


def row_shares(problem: Problem) -> float:
    """Return the height of a device's row, relative to one with the compute lane alone."""
    return 1 + SIDE_LANE * (len(problem.streams) - 1)


def makespan(timeline: Timeline) -> Ticks:
    """Return the end of the last pass, in ticks, without tasks that send tensors; 0 for a timeline without passes."""
    return int(timeline.times[1].max(initial=0))
