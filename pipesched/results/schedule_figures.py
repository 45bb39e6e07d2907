"""Figures of a schedule for JSON other than its times: memory, streams and activation modes, in the file's unit."""

from __future__ import annotations

from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, F, Pass
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.stream_use import stream_use
from pipesched.schedule.timeline import Timeline


def static_memory(problem: Problem) -> dict[str, list[float]]:
    """Return the entry `static_memory` of JSON answers: an amount for each device in the file's unit.

    No entry if all are 0.
    """
    static = [float(amount * problem.resolution) for amount in problem.static]
    return {"static_memory": static} if any(static) else {}


def memory_capacity(problem: Problem) -> list[float | None]:
    """Return the whole memory of each device in the file's unit; None where unlimited."""
    return [
        None if c is None else float((c + problem.static[d]) * problem.resolution) for d, c in enumerate(problem.room)
    ]


def streams_document(timeline: Timeline) -> list[dict[str, object]]:
    """Return for each stream, device by device, its times `busy` and `exposed` in the file's unit, as floats.

    The keys `device` and `stream` name it. A stream is exposed while it runs and the first stream of its device does
    not.
    """
    in_units = timeline.problem.in_units
    return [
        {"device": of.device, "stream": of.stream, "busy": in_units(busy), "exposed": in_units(exposed)}
        for of, busy, exposed in stream_use(timeline)
    ]


def decisions(problem: Problem, schedule: Schedule) -> tuple[list[Pass], dict[Pass, str]]:
    """Return the forwards whose activation is offloaded, and by forward the name of the mode that recomputes it.

    Forwards are ordered by stage, then micro-batch; those with kept activations are in neither.
    """
    passes = sorted(schedule.passes(), key=lambda p: (p.stage, p.microbatch))
    offloaded = [p._replace(kind=F) for p in passes if p.kind is OFFLOAD]
    again = [p for p in passes if p.kind in RECOMPUTATIONS]
    return offloaded, {p._replace(kind=F): problem.tasks_of(p.kind, p.stage)[0].name for p in again}


def decisions_document(problem: Problem, schedule: Schedule) -> dict[str, object]:
    """Return the part `{"decisions": …}` of JSON answers: lists of the names of forwards, `offloaded` and `recomputed`.

    With several modes of recomputation `ways` has the mode's name by forward. The lists are empty for problems without
    activation modes.
    """
    if not problem.network.has_activation_modes:
        return {"decisions": {"offloaded": [], "recomputed": []}}
    offloaded, recomputed = decisions(problem, schedule)
    document: dict[str, object] = {"offloaded": list(map(str, offloaded)), "recomputed": list(map(str, recomputed))}
    if len({mode.name for stage in problem.stages for mode in stage.recompute}) > 1:
        document["ways"] = {str(p): name for p, name in recomputed.items()}
    return {"decisions": document}
