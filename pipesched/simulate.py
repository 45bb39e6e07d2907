"""Gives a schedule its times: every task as soon as its stream and what it needs allow. Exact, in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipesched.errors import BadInput, Deadlock
from pipesched.passes import Pass, Stream, Task
from pipesched.problem import Problem
from pipesched.schedule import Schedule
from pipesched.timeline import Timeline, block_ticks


class _Node(NamedTuple):
    """What starts as one: a task, or an overlapped block of two passes."""

    tasks: tuple[Task, ...]
    passes: tuple[Pass, ...]  # whose needs this node waits for: only the first task of a pass does
    ticks: int


class _Graph(NamedTuple):
    """Nodes; what each waits for as (node, lag); the nodes that open and close a stream of each device."""

    nodes: list[_Node]
    waits: list[list[tuple[int, int]]]
    opening: list[list[int]]
    closing: list[list[int]]


def simulate(problem: Problem, schedule: Schedule, not_before: Sequence[int] | None = None) -> Timeline:
    """As soon as possible under the given order.

    `not_before[d]` keeps device d idle until that tick. Raises `Deadlock`, which names the circle of waits, where the
    order can never run to its end, and `BadInput` where a pass is missing or stands twice. Takes time linear in the
    number of passes.
    """
    graph = _graph(problem, schedule)
    start, _ = _run(graph, not_before or [0] * problem.devices)
    starts = {task: start[number] for number, node in enumerate(graph.nodes) for task in node.tasks}
    return Timeline(problem, schedule, starts)


def latest_openings(problem: Problem, schedule: Schedule) -> list[int]:
    """How late each device can start its first pass without any device ending later than as soon as possible."""
    graph = _graph(problem, schedule)
    start, sequence = _run(graph, [0] * problem.devices)
    latest = [max(start, default=0)] * len(start)
    for closing in graph.closing:
        for node in closing:
            latest[node] = start[node]
    for node in reversed(sequence):
        for before, lag in graph.waits[node]:
            latest[before] = min(latest[before], latest[node] - lag - graph.nodes[before].ticks)
    return [min((latest[node] for node in opening), default=0) for opening in graph.opening]


def _run(graph: _Graph, not_before: Sequence[int]) -> tuple[list[int], list[int]]:
    """The start of every node, and the nodes in an order in which each follows what it waits for."""
    nodes, waits = graph.nodes, graph.waits
    followers: list[list[tuple[int, int]]] = [[] for _ in nodes]
    missing = [len(before) for before in waits]
    for node, before in enumerate(waits):
        for other, lag in before:
            followers[other].append((node, lag))
    start = [0] * len(nodes)
    for device, opening in enumerate(graph.opening):
        for node in opening:
            start[node] = not_before[device]
    ready = [node for node, count in enumerate(missing) if count == 0]
    sequence: list[int] = []
    while ready:
        node = ready.pop()
        sequence.append(node)
        end = start[node] + nodes[node].ticks
        for other, lag in followers[node]:
            start[other] = max(start[other], end + lag)
            missing[other] -= 1
            if missing[other] == 0:
                ready.append(other)
    if len(sequence) < len(nodes):
        raise Deadlock(_circle(nodes, waits, missing))
    return start, sequence


def _graph(problem: Problem, schedule: Schedule) -> _Graph:
    nodes: list[_Node] = []
    waits: list[list[tuple[int, int]]] = []
    openings: list[list[int]] = []
    closings: list[list[int]] = []
    ends: dict[Pass, int] = {}  # the node whose end is the pass's end
    for order in schedule.orders:
        latest: dict[Stream, int] = {}
        opening: list[int] = []

        def add(node: _Node, stream: Stream, after: list[tuple[int, int]], latest: dict[Stream, int] = latest,
                opening: list[int] = opening) -> None:  # fmt: skip
            if stream in latest:
                after.append((latest[stream], 0))
            else:
                opening.append(len(nodes))
            latest[stream] = len(nodes)
            nodes.append(node)
            waits.append(after)

        for slot in order:
            ticks = block_ticks(problem, slot)
            if ticks is not None:
                add(_Node(tuple(map(Task, slot)), slot, ticks), Stream.COMPUTE, [])
                for p in slot:
                    _claim(ends, p, len(nodes) - 1)
                continue
            for p in slot:
                for task, part in problem.tasks(p):
                    first = task.part == 0
                    after = [] if first else [(len(nodes) - 1, 0)]
                    add(_Node((task,), (p,) if first else (), part.ticks), part.stream, after)
                _claim(ends, p, len(nodes) - 1)
        openings.append(opening)
        closings.append(list(latest.values()))
    for number, node in enumerate(nodes):
        for p in node.passes:
            for before, lag in problem.needs(p, schedule.is_fused):
                if before not in ends:
                    raise BadInput(f"{p} needs {before}, which the schedule does not hold")
                waits[number].append((ends[before], lag))
    return _Graph(nodes, waits, openings, closings)


def _claim(ends: dict[Pass, int], p: Pass, node: int) -> None:
    if p in ends:
        raise BadInput(f"{p} stands twice in the schedule")
    ends[p] = node


def _circle(nodes: list[_Node], waits: list[list[tuple[int, int]]], missing: list[int]) -> list[str]:
    """Walk back along unmet waits until a node comes again."""
    node = next(number for number, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(other for other, _ in waits[node] if missing[other])
    return ["&".join(map(str, nodes[n].tasks)) for n in path[seen[node] :]]
