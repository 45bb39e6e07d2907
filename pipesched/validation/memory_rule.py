"""Rule: the memory of passes never exceeds the capacity of a device or a host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import amount, memory_text
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import F, Pass
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.schedule.pass_table import Whole, whole
from pipesched.schedule.timeline import Timeline
from pipesched.validation.pass_rules import (
    changes_elsewhere,
    copies_to,
    dropped,
    for_each,
    for_one,
    host_changes,
    memory_changes,
    moves_to_devices,
)
from pipesched.validation.violation import Violation


def memory(timeline: Timeline) -> Iterator[Violation]:
    """Yield at most one violation for each device, the first time at which its passes exceed its capacity."""
    problem, columns = timeline.problem, timeline.schedule.columns
    if set(problem.room) == {None}:
        return

    def change(end: int) -> Whole:
        own = columns.each(lambda kind, stage: memory_changes(problem, kind, stage)[end], 2 * len(columns))
        return for_each(problem, own, columns.microbatch)

    # Start and end of each pass side by side: a stable sort leaves what falls on one tick in the device's order. With
    # several streams, or passes of other devices, what ends at that tick and began before is given back first.
    ticks, changes = np.stack(timeline.times, axis=1), np.stack((change(0), change(1) - _dropped(timeline)), axis=1)
    several = len(problem.streams) > 1 or moves_to_devices(problem)
    turn = np.stack((np.ones(len(ticks), bool), ticks[:, 0] == ticks[:, 1]), axis=1) if several else ticks
    for device, capacity in enumerate(problem.room):
        if capacity is None:
            continue
        rows = columns.on(device)
        when, turns, steps = ticks[rows].ravel(), turn[rows].ravel(), changes[rows].ravel()
        copies = _copies_of_others(timeline, device)
        if copies:
            when, turns, steps = (
                np.append(own, np.array([one[n] for one in copies], own.dtype))
                for n, own in enumerate((when, turns, steps))
            )
        order = np.lexsort((turns, when)) if several else np.argsort(when, kind="stable")
        steps = steps[order]
        levels = steps.cumsum()
        # What is held at all times may alone be more than there is.
        too_much = np.greater(levels, capacity) & (np.greater(steps, 0) | (capacity < 0))
        for at in np.flatnonzero(too_much)[:1].tolist():
            place = int(order[at])
            own = 2 * (rows.stop - rows.start)
            p = columns.passes[rows.start + place // 2] if place < own else copies[place - own].of
            static = problem.static[device]
            in_use, limit = memory_text(problem, int(levels[at]) + static), memory_text(problem, capacity + static)
            start = amount(problem, timeline.start(p))
            name = pass_text(problem, p)
            text = f"device {device} holds {in_use} when {name} starts at {start}; its capacity is {limit}"
            yield Violation("memory", (p,), text)


class _CopyOfOther(NamedTuple):
    """A change of a device's memory by a copy of another device.

    It has tick and amount; `later` is True if the amount is taken, not freed.
    """

    tick: Ticks
    later: bool
    change: MemorySteps
    of: Pass


def _copies_of_others(timeline: Timeline, device: DeviceId) -> list[_CopyOfOther]:
    """Return the changes of a device's memory by copies of other devices.

    Memory that a copy gives back is free before any is taken at its tick; the rule by orders and waits checks that.
    """
    problem, found = timeline.problem, list[_CopyOfOther]()
    for p in copies_to(timeline.schedule, problem, device):
        taken, given = for_one(problem, changes_elsewhere(problem, p.kind, p.stage), p.microbatch)
        found += [_CopyOfOther(timeline.start(p), True, taken, p), _CopyOfOther(timeline.end(p), False, given, p)]
    return found


def _dropped(timeline: Timeline) -> Whole:
    """Return by row of the schedule's columns the memory that a forward frees at its end.

    The micro-batch recomputes its activation later.
    """
    problem, columns = timeline.problem, timeline.schedule.columns
    found = whole([0] * len(columns))
    for kind, stage in columns.pass_types:
        freed = dropped(problem, kind, stage)
        if freed:
            again, forward = columns.rows(kind, stage), columns.rows(F, stage)
            found[forward[again >= 0]] = freed
    return for_each(problem, found, columns.microbatch)


def host_memory(timeline: Timeline) -> Iterator[Violation]:
    """Yield at most one violation for each host, the first time at which its capacity is exceeded."""
    problem = timeline.problem
    for capacity, devices in problem.resources.hosts:
        if capacity is None:
            continue
        events: list[tuple[int, bool, int, Pass]] = []
        for p in (p for device in devices for p in timeline.schedule.passes_on(device)):
            begin, end = timeline.start(p), timeline.end(p)
            taken, given = for_one(problem, host_changes(problem, p.kind, p.stage), p.microbatch)
            # What ends at a tick and began before is given back before what starts then takes.
            events += [(begin, True, taken, p)] if taken else []
            events += [(end, begin == end, given, p)] if given else []
        level = 0
        for tick, _, change, p in sorted(events):
            level += change
            if change > 0 and level > capacity:
                in_use, limit = memory_text(problem, level), memory_text(problem, capacity)
                when = amount(problem, tick)
                name = pass_text(problem, p)
                text = f"{host_name(devices)} holds {in_use} when {name} starts at {when}; its capacity is {limit}"
                yield Violation("memory", (p,), text)
                break


def host_name(devices: tuple[DeviceId, ...]) -> str:
    """Return the name of a host, made of the devices that use it."""
    return f"the host of device{'' if len(devices) == 1 else 's'} {', '.join(map(str, devices))}"
