"""Memory that passes change besides their own device's: that of hosts and of other devices, where activations move to.

A memory is a reservoir of the task network: device d is reservoir d, and the hosts follow the devices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from pipesched.problem.quantities import DeviceId, MemorySteps, ReservoirId, Ticks
from pipesched.schedule.timeline import Timeline


class ReservoirChange(NamedTuple):
    """A change of a memory by a pass that runs on another device, or, if it is a host's memory, by any pass.

    It has the tick, and the amount in steps (negative: freed). Memory that is taken counts `later` than all memory
    freed at the same tick, since no order of the two is known. So an activation that moves there and back at one tick
    counts as never there, though a schedule must have room for it.
    """

    tick: Ticks
    amount: MemorySteps
    later: bool


def changes_elsewhere(timeline: Timeline, reservoir: ReservoirId) -> Iterator[ReservoirChange]:
    """Yield the changes of a reservoir by passes whose own device has another memory, in no particular order.

    Each such pass has two: one at its start and one at its end. An amount may be 0.
    """
    problem, columns = timeline.problem, timeline.schedule.columns
    for of, change in problem.network.changes_of_others(reservoir).items():
        rows = columns.rows(*of)
        for row in rows[rows >= 0].tolist():
            p = columns.passes[row]
            at_start, at_end = (problem.scaled(amount, p.microbatch) for amount in change)
            begin, end = (int(column[row]) for column in timeline.times)
            yield ReservoirChange(begin, at_start, True)
            yield ReservoirChange(end, at_end, False)


def steps_elsewhere(timeline: Timeline, reservoir: ReservoirId) -> list[tuple[Ticks, MemorySteps]]:
    """Return the memory of a reservoir that passes of other devices have in use, as a step function over time.

    Its entries are (tick, level from that tick on), the level in steps of the resolution, in order of time, with one
    for each tick; the first is at tick 0.
    """
    at = Counter({0: 0})
    for one in changes_elsewhere(timeline, reservoir):
        at[one.tick] += one.amount
    level, steps = 0, list[tuple[int, int]]()
    for tick in sorted(at):
        level += at[tick]
        steps.append((tick, level))
    return steps


def host_steps(timeline: Timeline) -> list[tuple[tuple[DeviceId, ...], list[tuple[Ticks, MemorySteps]]]]:
    """Return for each host that activations may move to (its devices, its memory in use over time).

    The memory is a list of (tick, level from that tick on), the level in steps of the resolution.
    """
    network = timeline.problem.network
    first = len(network.room)
    return [(host.devices, steps_elsewhere(timeline, first + n)) for n, host in enumerate(network.hosts)]
