"""Serial schedule generation: passes are inserted one by one into the first gap that precedences and memory allow.

This is serial schedule generation with insertion, as in project scheduling. On the mirrored graph it builds the
schedule from the end: passes are then put as late as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from heuristics.building.patience import impatient
from pipesched.deadline import SHORT, ask, asking
from pipesched.problem.passes import B, F, Pass, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks

# A pass: an index in `PassGraph.passes`.
PassId: TypeAlias = int
# A pass, and the ticks between its end and the start of another, or from the other's end to its start.
Edge = tuple[PassId, Ticks]


@dataclass(frozen=True)
class PassGraph:
    """All passes of a problem with split backwards, by number: predecessors, durations in ticks, memory changes.

    `device[n]` is the device of pass n, one of `devices`; `before[n]` and `after[n]` are its predecessors and
    successors, each as (pass, lag). Memory: `taken[n]` at its start, and `kept[n]` from its end on, which is what it
    took less what it gives back.
    """

    devices: int
    passes: tuple[Pass, ...]
    device: tuple[DeviceId, ...]
    ticks: tuple[Ticks, ...]
    taken: tuple[MemorySteps, ...]  # memory at the start
    kept: tuple[MemorySteps, ...]  # memory from the end on: what was taken less what is given back
    before: tuple[tuple[Edge, ...], ...]
    after: tuple[tuple[Edge, ...], ...]

    def mirrored(self) -> PassGraph:
        """Return the graph with time reversed: memory released is taken instead, and successors become predecessors.

        Placing its passes early gives a schedule in which each pass is as late as possible.
        """
        taken = tuple(most - net for most, net in zip(self.taken, self.kept, strict=True))
        kept = tuple(-net for net in self.kept)
        return PassGraph(
            self.devices, self.passes, self.device, self.ticks, taken, kept, before=self.after, after=self.before
        )


def pass_graph(problem: Problem) -> PassGraph:
    """Return the graph of a problem's passes, with F, B and W of every stage and micro-batch.

    Passes are numbered by stage, then by micro-batch, with F before B before W. Backwards must split.
    """
    stages = range(problem.placement.stages)
    passes = tuple(Pass(kind, s, j) for s in stages for j in problem.microbatches_of[s] for kind in (F, B, W))
    number = {p: n for n, p in enumerate(passes)}
    before: list[tuple[Edge, ...]] = []
    after: list[list[Edge]] = [[] for _ in passes]
    for n, p in asking(enumerate(passes), SHORT):
        before.append(tuple((number[q], lag) for q, lag in problem.network.predecessors(p, number)))
        for other, lag in before[-1]:
            after[other].append((n, lag))
    changes = [problem.network.change[p.kind, p.stage] for p in passes]
    return PassGraph(
        devices=problem.devices,
        passes=passes,
        device=tuple(map(problem.device, passes)),
        ticks=tuple(map(problem.duration, passes)),
        taken=tuple(at_start for at_start, _ in changes),
        kept=tuple(map(sum, changes)),
        before=tuple(before),
        after=tuple(map(tuple, after)),
    )


@dataclass
class _Row:
    """The schedule of a device built so far; lists are by place in its order, times in ticks.

    `ceiling` is the memory that the device may use. `start` and `end` are those of the passes in `passes`, `level` is
    the memory while each runs, `left` that after it. `waiting` has, in no order, the (priority, pass) of those for
    which memory had no room.
    """

    ceiling: MemorySteps
    passes: list[PassId] = field(default_factory=list)
    start: list[Ticks] = field(default_factory=list)
    end: list[Ticks] = field(default_factory=list)
    level: list[MemorySteps] = field(default_factory=list)  # memory while the pass runs
    left: list[MemorySteps] = field(default_factory=list)  # memory after it
    waiting: list[tuple[float, PassId]] = field(default_factory=list)  # passes for which memory had no room

    def gap(self, ready: Ticks, ticks: Ticks, taken: MemorySteps, kept: MemorySteps) -> tuple[int, Ticks] | None:
        """Return the first place in the order where a pass fits, and its start; None if memory rules out even the last.

        The pass takes `ticks` from tick `ready` on at the earliest; `taken` is its memory at the start, `kept` that
        after its end.
        """
        place = len(self.passes)
        if (self.left[-1] if place else 0) + taken > self.ceiling:
            return None
        found = place, max(ready, self.end[-1]) if place else ready
        while place and self.end[place - 1] > ready and (kept <= 0 or self.level[place - 1] + kept <= self.ceiling):
            place -= 1
            start = max(ready, self.end[place - 1]) if place else ready
            in_use = self.left[place - 1] if place else 0
            if start + ticks <= self.start[place] and in_use + taken <= self.ceiling:
                found = place, start
        return found

    def put(
        self, number: PassId, place: int, start: Ticks, ticks: Ticks, taken: MemorySteps, kept: MemorySteps
    ) -> None:
        in_use = self.left[place - 1] if place else 0
        self.passes.insert(place, number)
        self.start.insert(place, start)
        self.end.insert(place, start + ticks)
        self.level.insert(place, in_use + taken)
        self.left.insert(place, in_use + kept)
        if kept:
            for later in range(place + 1, len(self.passes)):
                self.level[later] += kept
                self.left[later] += kept


class Built(NamedTuple):
    """A schedule: `starts[n]` is the start of pass n in ticks, `orders[d]` has the passes of device d, by number."""

    starts: list[Ticks]
    orders: list[list[PassId]]


def insert_all(
    graph: PassGraph, priority: Sequence[float], ceiling: Sequence[MemorySteps], opens: Sequence[Ticks]
) -> Built | None:
    """Return the schedule made by inserting passes one by one into the first gap that fits, least priority first.

    Only passes with all predecessors inserted are candidates. `ceiling[d]` is the memory of device d, `opens[d]` the
    tick before which nothing starts there. A pass for which memory has no room waits until one that frees memory has
    been inserted on its device. Returns None if all remaining passes wait, or the time limit (`impatient`) is over. The
    order cannot deadlock: a pass never goes before one that ended when it was ready.
    """
    rows = [_Row(most) for most in ceiling]
    ready = [opens[d] for d in graph.device]
    missing = [len(edges) for edges in graph.before]
    starts = [0] * len(missing)
    heap = [(priority[n], n) for n, count in enumerate(missing) if count == 0]
    heapify(heap)
    while heap:
        if impatient():
            return None
        ask()
        entry = heappop(heap)
        n = entry[1]
        row, ticks, kept = rows[graph.device[n]], graph.ticks[n], graph.kept[n]
        gap = row.gap(ready[n], ticks, graph.taken[n], kept)
        if gap is None:
            row.waiting.append(entry)
            continue
        row.put(n, *gap, ticks, graph.taken[n], kept)
        starts[n] = gap[1]
        if kept < 0:
            for waiting in row.waiting:
                heappush(heap, waiting)
            row.waiting.clear()
        for other, lag in graph.after[n]:
            ready[other] = max(ready[other], gap[1] + ticks + lag)
            missing[other] -= 1
            if missing[other] == 0:
                heappush(heap, (priority[other], other))
    if any(row.waiting for row in rows):
        return None
    return Built(starts, [row.passes for row in rows])
