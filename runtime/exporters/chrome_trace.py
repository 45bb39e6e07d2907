"""Exporter of Chrome traces for Perfetto and chrome://tracing: a process for each device, a thread for each stream."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from pipesched.deadline import SHORT, asking
from pipesched.problem.pass_names import microbatch_number, piece_number
from pipesched.problem.passes import (
    KINDS,
    OF_PARAMETERS,
    RESHARD,
    UNSHARD,
    F,
    Pass,
    Task,
    may_send_tensor,
)
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.problem.units import SECONDS, seconds_in
from pipesched.schedule.memory_elsewhere import host_steps
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from runtime.exporters.catalogue import EXPORTERS, Exporter, Files, Settings

_SUFFIX = ".trace.json"

_MICROSECOND = 1000  # in nanoseconds
_UNKNOWN_UNIT = SECONDS["ms"]  # as which a unit is shown that is only a label

_Event = dict[str, object]
_Threads = dict[tuple[str, int], int]  # the thread number of each stream and lane, the same on every device


class _Box(NamedTuple):
    """One rectangle of the chart; times in nanoseconds, the finest unit of the viewers.

    `start` and `end` are its times; it is in the row of `stream`, in lane `lane` of it (from 0), since boxes of one
    stream may overlap.
    """

    task: Task
    start: int
    end: int
    device: DeviceId
    stream: str
    lane: int  # 0, or 1 for what overlaps another box of the same stream


def _write(timeline: Timeline, _: Settings) -> Files:
    devices = range(timeline.problem.devices)
    boxes = [box for device in devices for box in _boxes(timeline, device)]
    threads = _threads(boxes, timeline.problem.streams)
    events = [event for device in devices for event in _names(device, threads)]
    events += [_complete(timeline.problem, box, threads) for box in asking(boxes, SHORT)]
    events += _flows(timeline, boxes, threads)
    events += _counters(timeline)
    trace = {"displayTimeUnit": "ms", "otherData": _about(timeline), "traceEvents": events}
    return {_SUFFIX: json.dumps(trace, indent=1, ensure_ascii=False) + "\n"}


def _microseconds(nanoseconds: int) -> int | float:
    """Return the number of microseconds to write so that Perfetto gets the nanoseconds.

    Perfetto multiplies and truncates.
    """
    whole, remainder = divmod(nanoseconds, 1000)
    if remainder == 0:
        return whole
    nearest = nanoseconds / 1000
    # 1.001 * 1000 is a little less than 1001 in floats. A nanosecond lost, this box would overlap the one before,
    # and Perfetto leaves out boxes that overlap.
    return nearest if int(nearest * 1000) == nanoseconds else math.nextafter(nearest, math.inf)


def _about(timeline: Timeline) -> dict[str, str]:
    problem = timeline.problem
    unit = problem.time_unit
    if seconds_in(unit) is not None:
        scale = f"times are real: the problem's unit is {unit}"
    else:
        named = f"the problem's time unit is {unit!r}" if unit else "the problem names no time unit"
        scale = f"1 unit is shown as 1 ms: {named}"
    return {"tool": "pipesched", "problem": problem.name, "schedule": timeline.schedule.name, "time": scale}


def _boxes(timeline: Timeline, device: DeviceId) -> list[_Box]:
    """Return the rectangles of a device by start time, each with the lane in which it is drawn.

    The viewers refuse overlapping boxes in one thread, and the two passes of a block run at once: so a stream has as
    many lanes, threads of the trace, as boxes that run at one time.
    """
    problem = timeline.problem
    nanoseconds = _nanoseconds(problem)
    first, spans = problem.streams[0], list[tuple[int, int, Task, str]]()
    for p in asking(timeline.schedule.passes_on(device), SHORT):
        if timeline.in_block(p):
            spans.append((timeline.start(p), timeline.end(p), Task(p), first))
            continue
        for task, part in problem.tasks(p):
            spans.append((timeline.starts[task], timeline.starts[task] + part.ticks, task, part.stream))
    spans += [(one.start, one.end, one.task, one.stream) for one in timeline.elsewhere.get(device, ())]
    boxes: list[_Box] = []
    free: dict[str, list[int]] = {}  # when each lane's last box ends
    for start, end, task, stream in asking(sorted(spans, key=lambda span: span[0]), SHORT):
        lanes = free.setdefault(stream, [])
        lane = next((number for number, busy_until in enumerate(lanes) if busy_until <= start), len(lanes))
        lanes[lane : lane + 1] = [end]
        boxes.append(_Box(task, round(start * nanoseconds), round(end * nanoseconds), device, stream, lane))
    return boxes


def _nanoseconds(problem: Problem) -> Fraction:
    """Return the nanoseconds in a tick; a unit of the file that is no time counts as a millisecond."""
    return Fraction(problem.tick * (seconds_in(problem.time_unit) or _UNKNOWN_UNIT) * 10**9)


def _counters(timeline: Timeline) -> Iterator[_Event]:
    """Yield counter events: memory in use on every device and host at each change, in file units.

    That of devices includes static memory.
    """
    problem = timeline.problem
    nanoseconds, size = _nanoseconds(problem), float(problem.resolution)
    unit = f" ({problem.memory_unit})" if problem.memory_unit else ""
    counters = [
        (f"Memory{unit}", device, memory_steps(timeline, device), problem.static[device])
        for device in range(problem.devices)
    ]
    counters += [(f"On the host{unit}", devices[0], steps, 0) for devices, steps in host_steps(timeline)]
    for name, device, steps, always in counters:
        levels = {round(tick * nanoseconds): level for tick, level in steps}  # of one instant the last counts
        for at, level in sorted(({0: 0} | levels).items()):
            about = {"ph": "C", "name": name, "pid": device, "ts": _microseconds(at)}
            yield about | {"args": {"held": (level + always) * size}}


def _threads(boxes: list[_Box], order: Sequence[str]) -> _Threads:
    """Return the thread number, from 1, of each (stream, lane) in use: streams in the order `order`, compute first."""
    used = sorted({(box.stream, box.lane) for box in boxes}, key=lambda key: (order.index(key[0]), key[1]))
    return {key: number for number, key in enumerate(used, start=1)}


def _names(device: DeviceId, threads: _Threads) -> Iterator[_Event]:
    def metadata(kind: str, tid: int, **args: object) -> _Event:
        return {"ph": "M", "name": kind, "pid": device, "tid": tid, "args": args}

    yield metadata("process_name", 0, name=f"Device {device}")
    yield metadata("process_sort_index", 0, sort_index=device)
    for (stream, lane), tid in threads.items():
        yield metadata("thread_name", tid, name=f"{stream} (overlapped)" if lane else f"{stream}")
        yield metadata("thread_sort_index", tid, sort_index=tid)


def _complete(problem: Problem, box: _Box, threads: _Threads) -> _Event:
    kind, stage, turn = box.task.of
    piece = piece_number(problem, box.task.of)
    about: dict[str, object] = {"kind": f"{kind}", "stage": stage // problem.chain_arcs.pieces}
    if kind in (UNSHARD, RESHARD):
        about["gathering"] = turn
    elif kind not in OF_PARAMETERS:
        about["microbatch"] = microbatch_number(problem, box.task.of)
    return {
        "ph": "X",
        "name": problem.task_text(box.task),
        "cat": f"{kind}",
        "pid": box.device,
        "tid": threads[box.stream, box.lane],
        "ts": _microseconds(box.start),
        "dur": _microseconds(box.end - box.start),
        "cname": KINDS[kind].traced,
        "args": about | ({} if piece is None else {"piece": piece}),
    }


def _flows(timeline: Timeline, boxes: list[_Box], threads: _Threads) -> Iterator[_Event]:
    """Yield an arrow for every tensor sent between devices: event `s` where it leaves, `f` where it is used."""
    problem, schedule = timeline.problem, timeline.schedule
    pieces: dict[Pass, list[_Box]] = {}
    for box in asking(boxes, SHORT):
        pieces.setdefault(box.task.of, []).append(box)
    numbers = itertools.count(1)
    for p in asking(schedule.passes(), SHORT):
        for before, _ in problem.network.predecessors(p, schedule.pass_set):
            sender, receiver = max(pieces[before], key=lambda box: box.end), pieces[p][0]
            if sender.device == receiver.device or not may_send_tensor(before, p):
                continue
            arrow = {"cat": "transfer", "name": "activation" if p.kind is F else "gradient", "id": next(numbers)}
            # An arrow is tied to the box around its point, and the very end of a box is already the next one's.
            leaves = max(sender.start, sender.end - _MICROSECOND)
            yield {"ph": "s", **arrow, **_point(sender, threads, leaves)}
            yield {"ph": "f", **arrow, **_point(receiver, threads, receiver.start), "bp": "e"}


def _point(box: _Box, threads: _Threads, nanoseconds: int) -> _Event:
    return {"pid": box.device, "tid": threads[box.stream, box.lane], "ts": _microseconds(nanoseconds)}


EXPORTERS.register(
    Exporter(
        name="chrome-trace",
        description="a trace to look at in Perfetto (ui.perfetto.dev) or chrome://tracing",
        suffix=_SUFFIX,
        write=_write,
        streams=True,
        every_feature=True,
    )
)
