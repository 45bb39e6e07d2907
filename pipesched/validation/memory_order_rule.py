"""Rule: with several streams a schedule stays within memory under any durations, by orders and events alone.

A stream's order does not say what has ended on another one. A state that some durations lead to is a set of passes that
have begun, with those that certainly end before one of them starts. All such states stay within the capacity exactly if
every unit of memory that a pass takes is free at first or was freed by a pass that certainly ends before, and no unit
goes to two passes (a resource flow: Artigues, Michelon and Reusser, Insertion techniques for static and dynamic
resource-constrained project scheduling, 2003; Hall's theorem says that it exists). So units are assigned in the order
of time, and those assigned already are exchanged where a pass would get none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.formatting import memory_text
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import RECOMPUTATIONS, F, Pass
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps
from pipesched.schedule.timeline import Timeline
from pipesched.validation.memory_rule import host_name
from pipesched.validation.pass_rules import (
    changes_elsewhere,
    copies_to,
    dropped,
    for_one,
    host_changes,
    memory_changes,
    moves_to_devices,
)
from pipesched.validation.vector_clocks import VectorClocks
from pipesched.validation.violation import Violation

# A pass that takes memory: an index in the rows of `Units.given`.
Taker: TypeAlias = int
# A source of memory: an index in the columns of `Units.given`, or the number after the last one for the stock.
Source: TypeAlias = int


def memory_by_order(timeline: Timeline) -> Iterator[Violation]:
    """Yield at most one violation for each device or host: the first pass that may lack memory under other durations.

    For timelines valid in order and times. Nothing is yielded where devices have one stream each and no activation
    moves to another device.
    """
    problem = timeline.problem
    limits = [*problem.room, *(host.capacity for host in problem.resources.hosts)]
    alone = len(problem.streams) == 1 and not moves_to_devices(problem)
    if alone or all(capacity is None for capacity in limits):
        return
    known = VectorClocks(timeline)
    again: dict[tuple[int, int], int] = {}
    for p in timeline.schedule.passes():
        if p.kind in RECOMPUTATIONS:
            again[p.stage, p.microbatch] = for_one(problem, (dropped(problem, p.kind, p.stage), 0), p.microbatch)[0]

    def changes(p: Pass, device: DeviceId) -> tuple[MemorySteps, MemorySteps]:
        if problem.device(p) != device:
            return for_one(problem, changes_elsewhere(problem, p.kind, p.stage), p.microbatch)
        at_start, at_end = for_one(problem, memory_changes(problem, p.kind, p.stage), p.microbatch)
        return at_start, at_end - (again.get((p.stage, p.microbatch), 0) if p.kind is F else 0)

    for device, capacity in enumerate(problem.room):
        if capacity is not None:
            passes = [*timeline.schedule.passes_on(device), *copies_to(timeline.schedule, problem, device)]
            passes.sort(key=timeline.start)
            memory = _Memory(f"device {device}", capacity, problem.static[device])
            yield from _first_above(problem, known, passes, [changes(p, device) for p in passes], memory)
    for host_capacity, devices in problem.resources.hosts:
        if host_capacity is not None:
            passes = [p for device in devices for p in timeline.schedule.passes_on(device)]
            passes.sort(key=timeline.start)
            copies = [for_one(problem, host_changes(problem, p.kind, p.stage), p.microbatch) for p in passes]
            yield from _first_above(problem, known, passes, copies, _Memory(host_name(devices), host_capacity, None))


class _Memory(NamedTuple):
    """A memory: its name, its capacity for passes, and its static use (None for a host)."""

    name: str
    capacity: MemorySteps
    static: MemorySteps | None


def _first_above(
    problem: Problem,
    known: VectorClocks,
    passes: Sequence[Pass],
    changes: Sequence[tuple[MemorySteps, MemorySteps]],
    memory: _Memory,
) -> Iterator[Violation]:
    """Yield the violation of the first pass for which not enough memory is certainly free when it starts.

    `changes` are the amounts that each pass takes at its start and at its end (negative: frees).
    """
    taking = [(p, at_start) for p, (at_start, _) in zip(passes, changes, strict=True) if at_start > 0]
    giving = [(p, -at_end) for p, (_, at_end) in zip(passes, changes, strict=True) if at_end < 0]
    ends = np.array([known.when_ended(p) for p, _ in giving], np.int64).reshape(len(giving), known.streams)
    starts = np.array([known.at_start(p) for p, _ in taking], np.int64).reshape(len(taking), known.streams)
    given = np.array([(row >= ends).all(axis=1) for row in starts], bool).reshape(len(taking), len(giving))
    units = Units(given, [amount for _, amount in giving], memory.capacity)
    for row, (p, amount) in enumerate(taking):
        state = units.hand_out(row, amount)
        if state:
            away = np.flatnonzero(given[state].any(axis=0)).tolist()
            in_use = sum(taking[one][1] for one in state) - sum(giving[one][1] for one in away)
            static = memory.static or 0
            most, limit = memory_text(problem, in_use + static), memory_text(problem, memory.capacity + static)
            text = (
                f"{memory.name} may hold {most} when {pass_text(problem, p)} starts, if tasks take other times: its "
                f"orders and waits do not let it wait for what gives memory back; its capacity is {limit}"
            )
            yield Violation("memory", (p,), text)
            return


class Units:
    """The units of one memory, and the passes that have them.

    A unit is from a source: a freeing pass (`amounts`), or the memory that is free at first (`stock`). `given[t, g]` is
    True if the freeing pass g has certainly ended when the taking pass t starts. `hand_out` gives a taking pass some
    units, and gives other passes other units for them where needed.
    """

    def __init__(self, given: NDArray[np.bool_], amounts: Sequence[MemorySteps], stock: MemorySteps) -> None:
        # The last source is the stock, which anyone may take; before it come first those that the fewest may take.
        self._order = [*np.argsort(given.sum(axis=0), kind="stable").tolist(), len(amounts)]
        self._open = np.append(given, np.ones((len(given), 1), bool), axis=1)[:, self._order]
        self._left = [*amounts, stock]
        self._users: list[dict[int, int]] = [{} for _ in self._left]

    def hand_out(self, taker: Taker, amount: MemorySteps) -> list[Taker]:
        """Give `amount` units to a taking pass and return an empty list.

        If that is impossible, return the taking passes of a state that exceeds the memory; the units found until then
        stay with the pass.
        """
        while amount > 0:
            source, asks, has = self._search(taker)
            if source is None:
                return list(has)
            steps = [(source, asks[source])]
            while (other := has[steps[-1][1]]) is not None:
                steps.append((other, asks[other]))
            freed = [self._users[other][user] for (other, _), (_, user) in zip(steps[1:], steps, strict=False)]
            moved = min(amount, self._left[source], *freed)
            self._left[source] -= moved
            for one, user in steps:
                self._users[one][user] = self._users[one].get(user, 0) + moved
                if (other := has[user]) is not None:
                    self._users[other][user] -= moved
            amount -= moved
        return []

    def _search(self, taker: Taker) -> tuple[Source | None, dict[Source, Taker], dict[Taker, Source | None]]:
        """Return a source of units for the taking pass `taker` that has some left; None if there is none.

        It is found by a shortest chain of exchanges. Also returned are the taker that asks for each source, and for
        each taker the source whose units it would free (None for `taker` itself).
        """
        asks: dict[int, int] = {}
        has: dict[int, int | None] = {taker: None}
        queue = deque([taker])
        unseen = np.ones(len(self._order), bool)
        while queue:
            user = queue.popleft()
            here = np.flatnonzero(self._open[user] & unseen)
            unseen[here] = False
            for source in (self._order[place] for place in here.tolist()):
                asks[source] = user
                if self._left[source] > 0:
                    return source, asks, has
                for other, amount in self._users[source].items():
                    if amount > 0 and other not in has:
                        has[other] = source
                        queue.append(other)
        return None, asks, has
