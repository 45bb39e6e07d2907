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


def simulate(problem: Problem, schedule: Schedule, not_before: Sequence[int] | None = None) -> Timeline:
    """As soon as possible under the given order.

    `not_before[d]` keeps device d idle until that tick. Raises `Deadlock`, which names the circle of waits, where
    the order can never run to its end, and `BadInput` where a pass is missing or stands twice. Takes time linear in the number of passes.
    """
    nodes, waits, first_of_device = _graph(problem, schedule)
    followers: list[list[tuple[int, int]]] = [[] for _ in nodes]
    missing = [0] * len(nodes)
    for node, before in enumerate(waits):
        missing[node] = len(before)
        for other, lag in before:
            followers[other].append((node, lag))
    start = [0] * len(nodes)
    for device, opening in enumerate(first_of_device):
        for node in opening:
            start[node] = not_before[device] if not_before else 0
    ready = [node for node, count in enumerate(missing) if count == 0]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        end = start[node] + nodes[node].ticks
        for other, lag in followers[node]:
            if end + lag > start[other]:
                start[other] = end + lag
            missing[other] -= 1
            if missing[other] == 0:
                ready.append(other)
    if done < len(nodes):
        raise Deadlock(_circle(nodes, waits, missing))
    starts = {task: start[number] for number, node in enumerate(nodes) for task in node.tasks}
    return Timeline(problem, schedule, starts)


def _graph(
    problem: Problem, schedule: Schedule
) -> tuple[list[_Node], list[list[tuple[int, int]]], list[list[int]]]:
    """The nodes, what each waits for as (node, lag), and the nodes that open a stream of each device."""
    nodes: list[_Node] = []
    waits: list[list[tuple[int, int]]] = []
    first_of_device: list[list[int]] = []
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
        first_of_device.append(opening)
    for number, node in enumerate(nodes):
        for p in node.passes:
            for before, lag in problem.needs(p, schedule.is_fused):
                if before not in ends:
                    raise BadInput(f"{p} needs {before}, which the schedule does not hold")
                waits[number].append((ends[before], lag))
    return nodes, waits, first_of_device


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
