"""What each stream does, in the file's unit, as programs read it."""

from __future__ import annotations

from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline


def streams_document(timeline: Timeline) -> list[dict[str, object]]:
    """For each stream of each device how long it works, and how much of that while the device's first one does not."""
    in_units = timeline.problem.in_units
    return [
        {"device": of.device, "stream": of.stream, "busy": in_units(busy), "exposed": in_units(exposed)}
        for of, busy, exposed in stream_use(timeline)
    ]
