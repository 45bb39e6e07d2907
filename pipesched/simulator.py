"""Gives a schedule its times: every task as soon as its stream and what it needs allow. Exact, in integer ticks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipesched.errors import BadInput, Deadlock
from pipesched.passes import Pass, PassKind, Stream, Task
from pipesched.problem import Problem
from pipesched.schedule import Schedule, Slot
from pipesched.timeline import Timeline, block_ticks


class Graph:
    """What starts as one, a task or an overlapped block of two passes, is a node, known by its number.

    `tasks[n]` and `ticks[n]` are a node's tasks and duration; `waits[n]` the (node, lag) whose end, `lag` ticks later,
    it waits for; `streams[d]` the nodes of each stream of device d, in order.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.tasks: list[tuple[Task, ...]] = []
        self.ticks: list[int] = []
        self.waits: list[list[tuple[int, int]]] = []
        # The node with which each pass begins, and the one whose end is its end: by kind and stage, then micro-batch.
        self._begin: defaultdict[tuple[PassKind, int], dict[int, int]] = defaultdict(dict)
        self._end: defaultdict[tuple[PassKind, int], dict[int, int]] = defaultdict(dict)
        self.streams = [self._add_device(problem, order) for order in schedule.orders]
        for kind, stage in list(self._begin):
            self._add_needs(problem, kind, stage)

    @property
    def opening(self) -> list[list[int]]:
        """The nodes that come first on a stream of each device."""
        return [[nodes[0] for nodes in streams] for streams in self.streams]

    @property
    def closing(self) -> list[list[int]]:
        """The nodes that come last on a stream of each device."""
        return [[nodes[-1] for nodes in streams] for streams in self.streams]

    def _add_device(self, problem: Problem, order: Sequence[Slot]) -> list[list[int]]:
        streams: defaultdict[Stream, list[int]] = defaultdict(list)
        for slot in order:
            block = block_ticks(problem, slot)
            if block is not None:
                node = self._add(tuple(map(Task, slot)), block, streams[Stream.COMPUTE])
                for p in slot:
                    self._claim(p, node, node)
                continue
            for p in slot:
                parts = problem.costs.of(p.kind, p.stage)
                first = node = self._add((Task(p),), parts[0].ticks, streams[parts[0].stream])
                for number, part in enumerate(parts[1:], start=1):
                    before, node = node, self._add((Task(p, number),), part.ticks, streams[part.stream])
                    self.waits[node].append((before, 0))
                self._claim(p, first, node)
        return list(streams.values())

    def _add(self, tasks: tuple[Task, ...], ticks: int, stream: list[int]) -> int:
        """A node behind the latest one of its stream."""
        node = len(self.tasks)
        self.tasks.append(tasks)
        self.ticks.append(ticks)
        self.waits.append([(stream[-1], 0)] if stream else [])
        stream.append(node)
        return node

    def _claim(self, p: Pass, first: int, last: int) -> None:
        kind, stage, microbatch = p
        ends = self._end[kind, stage]
        if microbatch in ends:
            raise BadInput(f"{p} stands twice in the schedule")
        ends[microbatch] = last
        self._begin[kind, stage][microbatch] = first

    def _add_needs(self, problem: Problem, kind: PassKind, stage: int) -> None:
        """Micro-batches are alike: each needs of its own passes what the first needs of its."""
        one = Pass(kind, stage, 0)
        for split, fused in zip(problem.needs(one, lambda *_: False), problem.needs(one, lambda *_: True), strict=True):
            ends, lag = self._end[split.before.kind, split.before.stage], split.lag
            fused_ends = self._end[fused.before.kind, fused.before.stage]
            for microbatch, node in self._begin[kind, stage].items():
                before = fused_ends.get(microbatch, ends.get(microbatch))
                if before is None:
                    p, needed = (x._replace(microbatch=microbatch) for x in (one, split.before))
                    raise BadInput(f"{p} needs {needed}, which the schedule does not hold")
                self.waits[node].append((before, lag))


def simulate(problem: Problem, schedule: Schedule, not_before: Sequence[int] | None = None) -> Timeline:
    """As soon as possible under the given order.

    `not_before[d]` keeps device d idle until that tick. Raises `Deadlock`, which names the circle of waits, where the
    order can never run to its end, and `BadInput` where a pass is missing or stands twice. Takes time linear in the
    number of passes.
    """
    return _timeline(problem, schedule, Graph(problem, schedule), not_before or [0] * problem.devices)


def simulate_late(problem: Problem, schedule: Schedule) -> Timeline:
    """As soon as possible, but every device begins as late as makes none end later."""
    graph = Graph(problem, schedule)
    return _timeline(problem, schedule, graph, _latest_openings(graph))


def latest_openings(problem: Problem, schedule: Schedule) -> list[int]:
    """How late each device can start its first pass without any device ending later than as soon as possible."""
    return _latest_openings(Graph(problem, schedule))


def _timeline(problem: Problem, schedule: Schedule, graph: Graph, not_before: Sequence[int]) -> Timeline:
    start, _ = run_order(graph, not_before)
    starts = {task: tick for tasks, tick in zip(graph.tasks, start, strict=True) for task in tasks}
    return Timeline(problem, schedule, starts)


def _latest_openings(graph: Graph) -> list[int]:
    start, sequence = run_order(graph, [0] * len(graph.streams))
    latest = [max(start, default=0)] * len(start)
    for closing in graph.closing:
        for node in closing:
            latest[node] = start[node]
    for node in reversed(sequence):
        by = latest[node]
        for before, lag in graph.waits[node]:
            latest[before] = min(latest[before], by - lag - graph.ticks[before])
    return [min((latest[node] for node in opening), default=0) for opening in graph.opening]


def run_order(graph: Graph, not_before: Sequence[int]) -> tuple[list[int], list[int]]:
    """The start of every node, and the nodes in an order in which each follows what it waits for.

    Every stream runs until it waits for a node that has not run, and goes on once that has.
    """
    start = [0] * len(graph.ticks)
    end: list[int | None] = [None] * len(graph.ticks)
    sequence: list[int] = []
    running = [(nodes, 0) for streams in graph.streams for nodes in streams]
    waiting: defaultdict[int, list[tuple[list[int], int]]] = defaultdict(list)
    for device, opening in enumerate(graph.opening):
        for node in opening:
            start[node] = not_before[device]
    while running:
        nodes, reached = running.pop()
        for place in range(reached, len(nodes)):
            node = nodes[place]
            earliest = start[node]
            for before, lag in graph.waits[node]:
                ended = end[before]
                if ended is None:
                    waiting[before].append((nodes, place))
                    break
                earliest = max(earliest, ended + lag)
            else:
                start[node], end[node] = earliest, earliest + graph.ticks[node]
                sequence.append(node)
                running += waiting.pop(node, ())
                continue
            break
    if waiting:
        raise Deadlock(_circle(graph, end))
    return start, sequence


def _circle(graph: Graph, end: Sequence[int | None]) -> list[str]:
    """Walk back along unmet waits until a node comes again."""
    node = end.index(None)
    seen: dict[int, int] = {}
    path: list[int] = []
    while node not in seen:
        seen[node] = len(path)
        path.append(node)
        node = next(other for other, _ in graph.waits[node] if end[other] is None)
    return ["&".join(map(str, graph.tasks[n])) for n in path[seen[node] :]]
