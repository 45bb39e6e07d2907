"""Memory of activations that have moved, to a host or to another device, over time."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.network.task_network import Reservoir
from pipesched.schedule.timeline import Timeline


def hosts_of(timeline: Timeline) -> Sequence[Reservoir]:
    """Return the hosts of devices that may offload to them."""
    return timeline.problem.network.hosts


def host_steps(timeline: Timeline, devices: Sequence[int]) -> list[tuple[int, int]]:
    """Return the memory of the host of these devices as steps (tick, level from then on), beginning with (0, 0)."""
    network = timeline.problem.network
    number = next((n for n, one in enumerate(network.hosts) if one.devices == tuple(devices)), None)
    return [(0, 0)] if number is None else moved_steps(timeline, len(network.room) + number)


def moved_steps(timeline: Timeline, reservoir: int) -> list[tuple[int, int]]:
    """Return the memory that moved activations take of a reservoir of the network, as steps like those of a host."""
    problem, change_of = timeline.problem, timeline.problem.network.changes_of_others(reservoir)
    changes: dict[int, int] = {0: 0}
    for p in timeline.schedule.passes():
        if p[:2] in change_of:
            for tick, change in zip((timeline.start(p), timeline.end(p)), change_of[p[:2]], strict=True):
                changes[tick] = changes.get(tick, 0) + problem.scaled(change, p.microbatch)
    level, steps = 0, list[tuple[int, int]]()
    for tick in sorted(changes):
        level += changes[tick]
        steps.append((tick, level))
    return steps
