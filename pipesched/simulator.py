"""Gives a schedule its times: every task as soon as its stream and what it needs allow. Exact, in integer ticks."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.errors import BadInput, Deadlock
from pipesched.passes import Pass, Stream, Task
from pipesched.problem import Problem
from pipesched.schedule import Schedule, Slot
from pipesched.timeline import Timeline, block_ticks


class Graph:
    """What starts as one, a task or an overlapped block of two passes, is a node, known by its number.

    `tasks[n]` and `ticks[n]` are a node's tasks and duration; `waits[n]` the (node, lag) whose end, `lag` ticks later,
    it waits for; `opening[d]` and `closing[d]` the nodes that come first and last on a stream of device d.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.tasks: list[tuple[Task, ...]] = []
        self.ticks: list[int] = []
        self.waits: list[list[tuple[int, int]]] = []
        self.opening: list[list[int]] = []
        self.closing: list[list[int]] = []
        self._begin: list[tuple[int, Pass]] = []  # the node with which each pass begins
        self._end: dict[Pass, int] = {}  # the node whose end is the pass's end
        for order in schedule.orders:
            self._add_device(problem, order)
        for node, p in self._begin:
            for before, lag in problem.needs(p, schedule.is_fused):
                if before not in self._end:
                    raise BadInput(f"{p} needs {before}, which the schedule does not hold")
                self.waits[node].append((self._end[before], lag))

    def _add_device(self, problem: Problem, order: Sequence[Slot]) -> None:
        latest: dict[Stream, int] = {}
        self.opening.append([])
        for slot in order:
            block = block_ticks(problem, slot)
            if block is not None:
                node = self._add(tuple(map(Task, slot)), block, Stream.COMPUTE, latest)
                for p in slot:
                    self._claim(p, node, node)
                continue
            for p in slot:
                parts = problem.costs.of(p.kind, p.stage)
                first = node = self._add((Task(p),), parts[0].ticks, parts[0].stream, latest)
                for number, part in enumerate(parts[1:], start=1):
                    before, node = node, self._add((Task(p, number),), part.ticks, part.stream, latest)
                    self.waits[node].append((before, 0))
                self._claim(p, first, node)
        self.closing.append(list(latest.values()))

    def _add(self, tasks: tuple[Task, ...], ticks: int, stream: Stream, latest: dict[Stream, int]) -> int:
        """A node behind the latest one of its stream."""
        node = len(self.tasks)
        self.tasks.append(tasks)
        self.ticks.append(ticks)
        if stream in latest:
            self.waits.append([(latest[stream], 0)])
        else:
            self.waits.append([])
            self.opening[-1].append(node)
        latest[stream] = node
        return node

    def _claim(self, p: Pass, first: int, last: int) -> None:
        if p in self._end:
            raise BadInput(f"{p} stands twice in the schedule")
        self._begin.append((first, p))
        self._end[p] = last


def simulate(problem: Problem, schedule: Schedule, not_before: Sequence[int] | None = None) -> Timeline:
    """As soon as possible under the given order.

    `not_before[d]` keeps device d idle until that tick. Raises `Deadlock`, which names the circle of waits, where the
    order can never run to its end, and `BadInput` where a pass is missing or stands twice. Takes time linear in the
    number of passes.
    """
    graph = Graph(problem, schedule)
    start, _ = run_order(graph, not_before or [0] * problem.devices)
    starts = {task: tick for tasks, tick in zip(graph.tasks, start, strict=True) for task in tasks}
    return Timeline(problem, schedule, starts)


def latest_openings(problem: Problem, schedule: Schedule) -> list[int]:
    """How late each device can start its first pass without any device ending later than as soon as possible."""
    graph = Graph(problem, schedule)
    start, sequence = run_order(graph, [0] * problem.devices)
    latest = [max(start, default=0)] * len(start)
    for closing in graph.closing:
        for node in closing:
            latest[node] = start[node]
    for node in reversed(sequence):
        for before, lag in graph.waits[node]:
            latest[before] = min(latest[before], latest[node] - lag - graph.ticks[before])
    return [min((latest[node] for node in opening), default=0) for opening in graph.opening]


def run_order(graph: Graph, not_before: Sequence[int]) -> tuple[list[int], list[int]]:
    """The start of every node, and the nodes in an order in which each follows what it waits for."""
    ticks, waits = graph.ticks, graph.waits
    followers: list[list[tuple[int, int]]] = [[] for _ in waits]
    for node, before in enumerate(waits):
        for other, lag in before:
            followers[other].append((node, lag))
    missing = [len(before) for before in waits]
    start = [0] * len(waits)
    for device, opening in enumerate(graph.opening):
        for node in opening:
            start[node] = not_before[device]
    ready = [node for node, count in enumerate(missing) if count == 0]
    sequence: list[int] = []
    while ready:
        node = ready.pop()
        sequence.append(node)
        end = start[node] + ticks[node]
        for other, lag in followers[node]:
            start[other] = max(start[other], end + lag)
            missing[other] -= 1
            if missing[other] == 0:
                ready.append(other)
    if len(sequence) < len(waits):
        raise Deadlock(_circle(graph, missing))
    return start, sequence


def _circle(graph: Graph, missing: Sequence[int]) -> list[str]:
    """Walk back along unmet waits until a node comes again."""
    node = next(number for number, count in enumerate(missing) if count)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(other for other, _ in graph.waits[node] if missing[other])
    return ["&".join(map(str, graph.tasks[n])) for n in path[seen[node] :]]
