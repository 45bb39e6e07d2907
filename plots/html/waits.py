"""Why a device idles before a box: the task whose end, or whose tensor, the box waits for."""

from __future__ import annotations

from collections.abc import Mapping

from pipesched.problem.passes import Task
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.precedence_graph import Graph


def waits(timeline: Timeline, places: Mapping[Task, tuple[int, int]]) -> list[list[int]]:
    """A row a device, three numbers a box before which its stream idles: its place, and device and place of the cause.

    `places` says where the box of each task is: its device, and its place in the device's row. A box that starts later
    than all that it waits for is not among them, nor is one that nothing but the order of its stream holds up.
    """
    graph = Graph(timeline.problem, timeline.schedule)
    tasks, ticks = graph.tasks, graph.ticks
    start = [timeline.starts[of[0]] for of in tasks]
    rows: list[list[int]] = [[] for _ in range(timeline.problem.devices)]
    for node, before in enumerate(graph.waits):
        binding = [(lag, one) for one, lag in before if start[one] + ticks[one] + lag == start[node]]
        device = timeline.problem.device(tasks[node][0].of)
        far = [(lag, one) for lag, one in binding if lag or timeline.problem.device(tasks[one][0].of) != device]
        # Where the task before it on its stream ends just then there is no gap.
        if far and len(far) == len(binding) and start[node]:
            cause = places[tasks[max(far)[1]][0]]
            for task in tasks[node]:
                rows[device] += [places[task][1], *cause]
    return rows
