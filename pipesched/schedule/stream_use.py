"""Work of each stream of a device, and its exposed part, in which the device's first stream is idle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipesched.problem.network.task_network import Resource
from pipesched.problem.quantities import Ticks
from pipesched.schedule.timeline import Timeline

# Start and end.
Interval = tuple[Ticks, Ticks]


class StreamUse(NamedTuple):
    """The use of a stream, in ticks.

    `busy` is its work, `exposed` the part during which the first stream does not run.
    """

    of: Resource
    busy: Ticks
    exposed: Ticks


def stream_use(timeline: Timeline) -> Iterator[StreamUse]:
    """Yield the use of every stream of every device: device by device, streams in the order of `Problem.streams`."""
    streams = timeline.problem.streams
    for device in range(timeline.problem.devices):
        covered = list(_joined(timeline.busy(device, streams[0])))
        for stream in streams:
            working = list(_joined(timeline.busy(device, stream)))
            busy = sum(end - start for start, end in working)
            yield StreamUse(Resource(device, stream), busy, busy - _shared(working, covered))


def _joined(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Yield the union of intervals as disjoint intervals, in order."""
    begin, until = 0, 0
    for start, end in sorted(intervals):
        if start > until:
            if until > begin:
                yield begin, until
            begin = start
        until = max(until, end)
    if until > begin:
        yield begin, until


def _shared(intervals: list[Interval], others: list[Interval]) -> Ticks:
    """Return the length of the intersection of two sorted lists of disjoint intervals."""
    ticks, one, other = 0, 0, 0
    while one < len(intervals) and other < len(others):
        start = max(intervals[one][0], others[other][0])
        end = min(intervals[one][1], others[other][1])
        ticks += max(0, end - start)
        if intervals[one][1] <= others[other][1]:
            one += 1
        else:
            other += 1
    return ticks
