"""Why devices idle: every idle tick of a timeline with its cause. Defined in docs/concepts.md."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from heapq import heappop, heappush
from itertools import accumulate, pairwise

from pipesched.problem.passes import REDUCE, UNSHARD
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.precedence_graph import Graph

_COLLECTIVES = (UNSHARD, REDUCE)


class IdleCause(StrEnum):
    """What a device waits for while its first stream idles."""

    WARM_UP = "warm-up"  # its first pass is still to come
    COOL_DOWN = "cool-down"  # its last pass has ended
    OTHER_DEVICES = "other devices"  # they still compute what its next passes need
    TRANSFER = "transfer"  # what they need is on its way
    CHUNK = "chunk"  # what they are to compute lacks only an earlier or later piece
    COLLECTIVE = "collective"  # parameters are being gathered, or gradients reduced
    OTHER_STREAMS = "other streams"  # its own streams still copy or exchange what they need
    MEMORY = "memory"  # some pass could start, but its activation does not fit
    ORDER = "order"  # some pass could start, and the order has another one first


Idle = Counter[IdleCause]


@dataclass(frozen=True)
class IdleTimes:
    """The idle ticks of each device by their cause, from 0 to the makespan; their sum is its idle time."""

    devices: tuple[Idle, ...]
    makespan: int

    def shares(self) -> dict[IdleCause, float]:
        """Of all devices' time, in the order of the causes, those that there are: together the idle ratio."""
        total = self.makespan * len(self.devices)
        ticks = {cause: sum(idle[cause] for idle in self.devices) for cause in IdleCause}
        return {cause: float(Fraction(number, total)) for cause, number in ticks.items() if number}


def idle_times(timeline: Timeline) -> IdleTimes:
    """Of each device's first stream, the one that computes."""
    makespan = measure(timeline).makespan_ticks
    nodes = _Nodes(timeline)
    return IdleTimes(tuple(nodes.idle(device, makespan) for device in range(timeline.problem.devices)), makespan)


class _Nodes:
    """The nodes of the precedence graph with their times, and when what each one needs is there."""

    def __init__(self, timeline: Timeline) -> None:
        problem = timeline.problem
        self._timeline, self._graph = timeline, Graph(problem, timeline.schedule)
        tasks = self._graph.tasks
        self._start = [int(timeline.starts[of[0]]) for of in tasks]
        self._end = [start + int(ticks) for start, ticks in zip(self._start, self._graph.ticks, strict=True)]
        resources = [problem.network.tasks[of[0].of.kind, of[0].of.stage][of[0].part].resource for of in tasks]
        self._device = [problem.device(of[0].of) for of in tasks]
        self._rows: list[list[int]] = [[] for _ in range(problem.devices)]
        collective = [node for node, of in enumerate(tasks) if of[0].of.kind in _COLLECTIVES]
        self._collective = frozenset(collective)
        for node in sorted(range(len(tasks)), key=lambda node: (self._start[node], self._end[node])):
            if resources[node].stream == problem.streams[0]:
                self._rows[self._device[node]].append(node)
        self._arrives = [0] * len(tasks)
        self._last = [-1] * len(tasks)  # what is needed and there last; -1 for nothing
        self._others = [0] * len(tasks)  # when all is there that is needed and not a collective
        self._own = [(0, -1)] * len(tasks)  # as `_arrives` and `_last`, without other pieces of the micro-batch
        self._find_needs()

    def _find_needs(self) -> None:
        turns = {other: one for row in self._rows for one, other in pairwise(row)}
        for node, waits in enumerate(self._graph.waits):
            needed = [(self._end[one] + int(lag), one) for one, lag in waits]
            # One of them says only that the stream is taken until then; what it computes may be needed, too.
            in_turn = (self._end[turns[node]], turns[node]) if node in turns else None
            if in_turn in needed:
                needed.remove(in_turn)
            if needed:
                self._arrives[node], self._last[node] = max(needed)
                self._others[node] = max((at for at, one in needed if one not in self._collective), default=0)
                self._own[node] = max((own for own in needed if not self._other_piece(own[1], node)), default=(0, -1))

    def _other_piece(self, one: int, node: int) -> bool:
        """Whether a node is of another piece, on the stage of this one."""
        count = self._timeline.problem.sequence_chunks
        earlier, later = (self._graph.tasks[each][0].of.stage for each in (one, node))
        return earlier != later and earlier // count == later // count

    def _for_pieces(self, node: int, since: int, until: int) -> int:
        """How long in this time a node, or one that it waits for, has all that it needs but another piece."""
        found = 0
        while node >= 0 and self._arrives[node] > since:
            at, before = self._own[node]
            found += max(0, min(until, self._arrives[node]) - max(since, at))
            node = before
        return found

    def idle(self, device: int, makespan: int) -> Idle:
        """The device's idle ticks. Gaps are looked at in the order of time: of n passes that takes O(n log n)."""
        row, found = self._rows[device], Idle()
        if not row:
            return Idle({IdleCause.WARM_UP: makespan})
        for ticks, cause in self._outside(device, makespan):
            found[cause] += ticks
        steps, waiting = memory_steps(self._timeline, device), _Waiting(row, self._arrives, self._takes)
        for at, (one, other) in enumerate(pairwise(row), start=1):
            since, until = self._end[one], self._start[other]
            if since < until:
                for ticks, cause in self._in_gap(device, since, until, waiting.after(at), steps):
                    found[cause] += ticks
        return +found

    def _outside(self, device: int, makespan: int) -> Iterator[tuple[int, IdleCause]]:
        """The time before a device's first pass, and behind its last one."""
        row = self._rows[device]
        begun, ended = self._start[row[0]], self._end[row[-1]]
        gathered = self._last[row[0]] in self._collective
        alone = min(self._others[row[0]], begun) if gathered else begun
        own = (self._end[node] for node in self._collective if self._device[node] == device)
        reduced = max(own, default=ended)
        yield alone, IdleCause.WARM_UP
        yield begun - alone + max(0, reduced - ended), IdleCause.COLLECTIVE
        yield makespan - max(ended, reduced), IdleCause.COOL_DOWN

    def _in_gap(
        self, device: int, since: int, until: int, waiting: _Waiting, steps: list[tuple[int, int]]
    ) -> Iterator[tuple[int, IdleCause]]:
        """The parts of a gap with their causes; `waiting` are the nodes that run after it."""
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

    def _before_any(self, device: int, since: int, ready: int, first: int) -> Iterator[tuple[int, IdleCause]]:
        """Until the first of the nodes that could start has what it needs: it is computed, then on its way."""
        needed = self._last[first]
        sent = min(max(self._end[needed], since), ready)
        own = self._device[needed] == device
        beside = IdleCause.COLLECTIVE if needed in self._collective else IdleCause.OTHER_STREAMS
        pieces = self._for_pieces(first, since, sent)
        yield pieces, IdleCause.CHUNK
        yield sent - since - pieces, beside if own else IdleCause.OTHER_DEVICES
        yield ready - sent, IdleCause.TRANSFER

    def _fits(self, takes: Fraction, device: int, level: int) -> bool:
        """Whether the device, which holds so much, has room for what takes so much when it starts."""
        room = self._timeline.problem.room[device]
        return room is None or takes == 0 or level + takes <= room

    def _takes(self, node: int) -> Fraction:
        """What the node's passes take when they start."""
        problem = self._timeline.problem
        scale, takes = problem.microbatch_scale, Fraction(0)
        for task in self._graph.tasks[node]:
            change = problem.network.change[task.of.kind, task.of.stage].at_start if task.part == 0 else 0
            takes += max(0, change) * (scale[task.of.microbatch] if scale else 1)
        return takes


class _Waiting:
    """The nodes of one device that have not run yet, as time goes on: `after` and `least` are asked of later and later.

    `row` are its nodes in their order, `arrives` says of each when all that it needs is there, `takes` how much memory.
    """

    def __init__(self, row: list[int], arrives: list[int], takes: Callable[[int], Fraction]) -> None:
        self._takes, self._at, self._pushed = takes, 0, 0
        self._sorted = sorted((arrives[node], node) for node in row)
        self._place = {node: at for at, node in enumerate(row)}
        # The least from each place on.
        self._first = [*accumulate(((arrives[node], node) for node in reversed(row)), min)][::-1]
        self._arrived: list[tuple[Fraction, int]] = []

    def after(self, at: int) -> _Waiting:
        """Those from this place of the row on."""
        self._at = at
        return self

    @property
    def first(self) -> tuple[int, int]:
        """The one that has all that it needs soonest, with when that is."""
        return self._first[self._at]

    def arrivals(self, since: int, until: int) -> Iterator[int]:
        """When those within this time have all that they need; the device idles in it, so that none runs before."""
        return (arrives for arrives, _ in _between(self._sorted, since, until))

    def least(self, moment: int) -> Fraction:
        """The least memory that one takes which has all that it needs by then; there is one."""
        while self._pushed < len(self._sorted) and self._sorted[self._pushed][0] <= moment:
            node = self._sorted[self._pushed][1]
            heappush(self._arrived, (self._takes(node), node))
            self._pushed += 1
        while self._place[self._arrived[0][1]] < self._at:
            heappop(self._arrived)
        return self._arrived[0][0]


def _between(pairs: list[tuple[int, int]], since: int, until: int) -> list[tuple[int, int]]:
    """Those of sorted pairs whose first number lies between two, neither of which counts."""
    return pairs[bisect_right(pairs, since, key=_tick) : bisect_left(pairs, until, key=_tick)]


def _tick(pair: tuple[int, int]) -> int:
    return pair[0]
