"""Host memory used by offloaded activations, over time."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.network.task_network import HostMemory
from pipesched.schedule.timeline import Timeline


def hosts_of(timeline: Timeline) -> Sequence[HostMemory]:
    """Return the hosts of devices that may offload: those of the problem, and one for each device that is in none."""
    problem, network = timeline.problem, timeline.problem.network
    able = {problem.placement.stage_device[stage] for _, stage in network.host_change}
    named = {device for host in network.hosts for device in host.devices}
    alone = [HostMemory(None, (device,)) for device in sorted(able - named)]
    return [*(host for host in network.hosts if able.intersection(host.devices)), *alone]


def host_steps(timeline: Timeline, devices: Sequence[int]) -> list[tuple[int, int]]:
    """Return the host memory of these devices as steps (tick, level from then on), beginning with (0, 0)."""
    problem, change_of = timeline.problem, timeline.problem.network.host_change
    changes: dict[int, int] = {0: 0}
    for p in timeline.schedule.passes():
        if p[:2] in change_of and problem.device(p) in devices:
            for tick, change in zip((timeline.start(p), timeline.end(p)), change_of[p.kind, p.stage], strict=True):
                changes[tick] = changes.get(tick, 0) + problem.scaled(change, p.microbatch)
    level, steps = 0, list[tuple[int, int]]()
    for tick in sorted(changes):
        level += changes[tick]
        steps.append((tick, level))
    return steps
