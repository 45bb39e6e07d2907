"""Causes of idle time: a cause for every idle tick of a timeline. Defined in docs/concepts.md."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate, pairwise

from pipesched.deadline import SHORT, asking
from pipesched.problem.passes import KINDS
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.precedence_graph import Graph, Node

_COLLECTIVES = tuple(kind for kind, row in KINDS.items() if row.collective)


class IdleCause(StrEnum):
    """The cause for which a device waits while its first (compute) stream has no task.

    `WARM_UP`: before its first pass. `COOL_DOWN`: after its last. Between them, until some later pass of its order has
    its inputs, the cause is whatever the first to have them lacks: `OTHER_DEVICES` still compute one, a `TRANSFER`
    brings it, or one of its `OTHER_STREAMS` has yet to end. `CHUNK`: that pass, or one that it waits for on any device,
    lacks only another piece of its sequence on the same stage. `COLLECTIVE`: a gather or reduction has yet to end, also
    before its first pass or after its last. Else `MEMORY`, if no pass with its inputs fits, or `ORDER`: one fits, but
    the order has another pass first.
    """

    WARM_UP = "warm-up"
    COOL_DOWN = "cool-down"
    OTHER_DEVICES = "other devices"
    TRANSFER = "transfer"
    CHUNK = "chunk"
    COLLECTIVE = "collective"
    OTHER_STREAMS = "other streams"
    MEMORY = "memory"
    ORDER = "order"

    @property
    def meaning(self) -> str:
        """The meaning of the cause in a few words."""
        return _MEANINGS[self]


Idle = Counter[IdleCause]


_MEANINGS = {
    IdleCause.WARM_UP: "before its first pass",
    IdleCause.COOL_DOWN: "after its last pass",
    IdleCause.OTHER_DEVICES: "they still compute what all passes left to it need",
    IdleCause.TRANSFER: "the tensor for its next pass is on its way",
    IdleCause.CHUNK: "its next pass lacks only an earlier or later chunk of the sequence",
    IdleCause.COLLECTIVE: "parameters are being gathered, or gradients reduced",
    IdleCause.OTHER_STREAMS: "its own streams still copy or exchange what its next pass needs",
    IdleCause.MEMORY: "a pass could start, but its activation does not fit",
    IdleCause.ORDER: "a pass could start, but the schedule has another one first",
}


@dataclass(frozen=True)
class IdleTimes:
    """The idle ticks of each device by cause, from time 0 to the makespan; their sum is its idle time."""

    devices: tuple[Idle, ...]
    makespan: Ticks

    def shares(self) -> dict[IdleCause, float]:
        """Return the share of all devices' time by cause, in the order of the causes.

        Together they are the idle ratio. Causes without idle time are left out.
        """
        total = self.makespan * len(self.devices)
        ticks = {cause: sum(idle[cause] for idle in self.devices) for cause in IdleCause}
        return {cause: float(Fraction(number, total)) for cause, number in ticks.items() if number}


def idle_times(timeline: Timeline) -> IdleTimes:
    """Return by cause the ticks in which each device's first stream, the compute stream, is idle."""
    makespan = measure(timeline).makespan_ticks
    nodes = _Nodes(timeline)
    return IdleTimes(tuple(nodes.idle(device, makespan) for device in range(timeline.problem.devices)), makespan)


class _Nodes:
    """The nodes of the precedence graph with their times, and the arrivals of their inputs.

    Nodes are tasks, or blocks of two passes.
    """

    def __init__(self, timeline: Timeline) -> None:
        problem = timeline.problem
        self._timeline, self._graph = timeline, Graph(problem, timeline.schedule)
        tasks = self._graph.tasks
        self._start = self._graph.starts_in(timeline).tolist()
        self._end = [start + int(ticks) for start, ticks in zip(self._start, self._graph.ticks, strict=True)]
        types = [problem.network.tasks[of[0].of.kind, of[0].of.stage][of[0].part] for of in asking(tasks, SHORT)]
        self._device = [problem.device(of[0].of) for of in asking(tasks, SHORT)]
        self._rows: list[list[int]] = [[] for _ in range(problem.devices)]
        collective = [node for node, of in enumerate(tasks) if of[0].of.kind in _COLLECTIVES]
        self._collective = frozenset(collective)
        for node in asking(sorted(range(len(tasks)), key=lambda node: (self._start[node], self._end[node])), SHORT):
            own, *further = types[node].resources
            for device, where in ((self._device[node], own), *((where.device, where) for where in further)):
                if where.stream == problem.streams[0]:
                    self._rows[device].append(node)
        at_start = {of: max(0, change.at_start) for of, change in problem.network.change.items()}
        scale = problem.walks.scale
        # Memory that the node's passes take when they start.
        self._takes: list[Fraction | int] = [
            sum(
                at_start[kind, stage] * (scale[microbatch] if scale else 1)
                for (kind, stage, microbatch), part in of
                if part == 0
            )
            for of in asking(tasks, SHORT)
        ]
        self._arrives = [0] * len(tasks)
        self._last = [-1] * len(tasks)  # what is needed and there last; -1 for nothing
        self._turns: dict[int, list[int]] = {}
        for row in self._rows:
            for one, other in pairwise(row):
                self._turns.setdefault(other, []).append(one)
        for node in asking(range(len(tasks)), SHORT):
            needed = self._needed(node)
            if needed:
                self._arrives[node], self._last[node] = max(needed)

    def _needed(self, node: Node) -> list[tuple[Ticks, Node]]:
        """Return (arrival tick, node that it is from) of all that a node waits for, except its turn on the stream."""
        needed = [(self._end[one] + int(lag), one) for one, lag in self._graph.waits[node]]
        for before in self._turns.get(node, ()):
            # One of them says only that the stream is taken until then; what it computes may be needed, too.
            if (in_turn := (self._end[before], before)) in needed:
                needed.remove(in_turn)
        return needed

    def _other_piece(self, one: Node, node: Node) -> bool:
        """Return True if nodes `one` and `node` belong to different pieces on the same stage of the model."""
        count = self._timeline.problem.chain_arcs.pieces
        earlier, later = (self._graph.tasks[each][0].of.stage for each in (one, node))
        return earlier != later and earlier // count == later // count

    def _for_pieces(self, node: Node, since: Ticks, until: Ticks) -> Ticks:
        """Return the ticks from `since` to `until` in which a node, or one it waits for, lacks only another piece."""
        found = 0
        if self._timeline.problem.chain_arcs.pieces == 1:
            return found
        while node >= 0 and self._arrives[node] > since:
            own = (each for each in self._needed(node) if not self._other_piece(each[1], node))
            at, before = max(own, default=(0, -1))
            found += max(0, min(until, self._arrives[node]) - max(since, at))
            node = before
        return found

    def idle(self, device: DeviceId, makespan: Ticks) -> Idle:
        """Return the device's idle ticks by cause, from time 0 to the timeline's `makespan`.

        Gaps are examined in order of time; for n passes that takes O(n log n).
        """
        row, found = self._rows[device], Idle()
        if not row:
            return Idle({IdleCause.WARM_UP: makespan})
        for ticks, cause in self._outside(device, makespan):
            found[cause] += ticks
        steps, waiting = memory_steps(self._timeline, device), _Waiting(row, self._arrives, self._takes)
        for at, (one, other) in asking(enumerate(pairwise(row), start=1), SHORT):
            since, until = self._end[one], self._start[other]
            if since < until:
                for ticks, cause in self._in_gap(device, since, until, waiting.after(at), steps):
                    found[cause] += ticks
        return +found

    def _outside(self, device: DeviceId, makespan: Ticks) -> Iterator[tuple[Ticks, IdleCause]]:
        """Yield (ticks, cause) for the time before a device's first pass and after its last.

        The latter is until the timeline's `makespan`.
        """
        row = self._rows[device]
        begun, ended = self._start[row[0]], self._end[row[-1]]
        gathered = self._last[row[0]] in self._collective
        others = (at for at, one in self._needed(row[0]) if one not in self._collective)
        alone = min(max(others, default=0), begun) if gathered else begun
        tasks, devices_of = self._graph.tasks, self._timeline.problem.devices_of
        own = (self._end[node] for node in self._collective if device in devices_of(tasks[node][0]))
        reduced = max(own, default=ended)
        yield alone, IdleCause.WARM_UP
        yield begun - alone + max(0, reduced - ended), IdleCause.COLLECTIVE
        yield makespan - max(ended, reduced), IdleCause.COOL_DOWN

    def _in_gap(
        self,
        device: DeviceId,
        since: Ticks,
        until: Ticks,
        waiting: _Waiting,
        steps: list[tuple[Ticks, MemorySteps]],
    ) -> Iterator[tuple[Ticks, IdleCause]]:
        """Yield (ticks, cause) for the parts of an idle interval between two tasks of a device's first stream.

        Until some node in `waiting`, those that run after the interval, has all its inputs, the cause is whatever the
        first to have them lacks; then it is memory if none of those with inputs fits, else order. The parts add up to
        `until - since` ticks; some may be 0. `steps` is the device's memory as (tick, level from then on). Calls for
        a device are made in order of time, as `waiting` advances.
        """
        arrives, first = waiting.first
        ready = min(max(arrives, since), until)
        if since < ready:
            yield from self._before_any(device, since, ready, first)
        changes = (tick for tick, _ in _between(steps, ready, until))
        edges = {ready, until, *waiting.arrivals(ready, until), *changes}
        for begin, end in pairwise(sorted(edges)):
            level = steps[bisect_right(steps, begin, key=_tick) - 1][1]
            fits = self._fits(waiting.least(begin), device, level)
            yield end - begin, IdleCause.ORDER if fits else IdleCause.MEMORY

    def _before_any(
        self, device: DeviceId, since: Ticks, ready: Ticks, first: Node
    ) -> Iterator[tuple[Ticks, IdleCause]]:
        """Yield (ticks, cause) of the wait, from `since` to `ready`, for the inputs of `first`.

        `first` is the node that could start first. The inputs are first computed, then transferred.
        """
        needed = self._last[first]
        sent = min(max(self._end[needed], since), ready)
        own = self._device[needed] == device
        on_device = IdleCause.COLLECTIVE if needed in self._collective else IdleCause.OTHER_STREAMS
        pieces = self._for_pieces(first, since, sent)
        yield pieces, IdleCause.CHUNK
        yield sent - since - pieces, on_device if own else IdleCause.OTHER_DEVICES
        yield ready - sent, IdleCause.TRANSFER

    def _fits(self, takes: Fraction | MemorySteps, device: DeviceId, level: MemorySteps) -> bool:
        """Return True if a device at this memory level has room for a pass that takes `takes` at its start."""
        room = self._timeline.problem.room[device]
        return room is None or takes == 0 or level + takes <= room


class _Waiting:
    """The nodes of one device that have not run yet, as time goes on.

    `after` and `least` are called with ascending arguments. `row` has the device's nodes in order, `arrives` by node
    the tick at which all its inputs are there, `takes` its memory.
    """

    def __init__(self, row: list[Node], arrives: list[Ticks], takes: list[Fraction | MemorySteps]) -> None:
        self._row, self._takes, self._at, self._arrived = row, takes, 0, 0
        self._sorted = sorted((arrives[node], node) for node in row)
        # The least from each place on.
        self._first = [*accumulate(((arrives[node], node) for node in reversed(row)), min)][::-1]
        # How many that have all they need take so much, those that have run subtracted.
        self._number = Counter[Fraction | int]()

    def after(self, at: int) -> _Waiting:
        """Drop the nodes before index `at` of the row, which have run by now, and return this object."""
        for node in self._row[self._at : at]:
            self._number[self._takes[node]] -= 1
        self._at = at
        return self

    @property
    def first(self) -> tuple[Ticks, Node]:
        """Return (tick at which its inputs are there, node) of the waiting node that has its inputs first."""
        return self._first[self._at]

    def arrivals(self, since: Ticks, until: Ticks) -> Iterator[Ticks]:
        """Yield the ticks strictly between `since` and `until` at which some node has all its inputs.

        These two are the ends of an idle interval in which no node runs.
        """
        return (arrives for arrives, _ in _between(self._sorted, since, until))

    def least(self, moment: Ticks) -> Fraction | MemorySteps:
        """Return the least memory taken by a waiting node that has its inputs by the tick `moment`.

        0 if there is none.
        """
        while self._arrived < len(self._sorted) and self._sorted[self._arrived][0] <= moment:
            self._number[self._takes[self._sorted[self._arrived][1]]] += 1
            self._arrived += 1
        # None is counted where a schedule that is not valid ran one of them before it had what it needs.
        return min((takes for takes, number in self._number.items() if number > 0), default=0)


def _between(pairs: list[tuple[int, int]], since: Ticks, until: Ticks) -> list[tuple[int, int]]:
    """Return the sorted pairs whose first number is strictly between `since` and `until`."""
    return pairs[bisect_right(pairs, since, key=_tick) : bisect_left(pairs, until, key=_tick)]


def _tick(pair: tuple[int, int]) -> int:
    return pair[0]
