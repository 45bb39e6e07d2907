"""The critical path of a timeline: the chain of tasks, each waiting for the previous one, that ends last."""

from __future__ import annotations

from pipesched.problem.passes import Task
from pipesched.problem.quantities import Ticks
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.precedence_graph import Graph, Node


def critical_path(timeline: Timeline) -> list[tuple[Task, ...]]:
    """Return the tasks of the critical path, first to last; the two passes of an overlapped block are one entry.

    It ends with the last task of all; for the objective span, with the last task of the device with the longest span.
    It begins with a task at time 0, or one that starts later than all that it waits for has ended and arrived.
    """
    graph = Graph(timeline.problem, timeline.schedule)
    tasks, ticks = graph.tasks, graph.ticks
    start = [timeline.starts[of[0]] for of in tasks]
    here = _last(timeline, graph, start)
    path = []
    while here is not None:
        path.append(tasks[here])
        binding = [(lag, node) for node, lag in graph.waits[here] if start[node] + ticks[node] + lag == start[here]]
        here = min(binding)[1] if binding and start[here] > 0 else None
    return path[::-1]


def _last(timeline: Timeline, graph: Graph, start: list[Ticks]) -> Node | None:
    """Return the node at which the critical path ends, given the start of every node in ticks.

    It is an index in `graph.tasks`; None for a schedule without passes.
    """
    if not start:
        return None
    nodes: list[int] = [node for device in graph.closing for node in device]
    if timeline.problem.objective.by_device:
        spans = []
        for opening, closing in zip(graph.opening, graph.closing, strict=True):
            begin = min((start[node] for node in opening), default=0)
            spans.append(max((start[node] + graph.ticks[node] - begin for node in closing), default=0))
        nodes = graph.closing[max(range(len(spans)), key=spans.__getitem__)]
    return max(nodes, key=lambda node: (start[node] + graph.ticks[node], -node), default=None)
