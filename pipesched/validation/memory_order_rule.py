"""Rule: with several streams a schedule keeps its memory whatever its tasks take, by orders and events alone.

A stream's order does not say what has ended on another one. A state that some durations lead to is a set of passes that
have begun, with what surely ends before one of them starts. No such state holds more than the capacity if and only if
every unit that a pass takes comes from the stock or from a pass that gives it back and surely ends before, and no unit
goes to two (a resource flow: Artigues, Michelon and Reusser, Insertion techniques for static and dynamic
resource-constrained project scheduling, 2003; Hall's theorem says that it exists). So units are handed out in the order
of time, and those handed out already are exchanged where a pass would get none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.formatting import memory_text
from pipesched.problem.pass_names import pass_text
from pipesched.problem.passes import RECOMPUTATIONS, B, F, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.pass_table import Ints
from pipesched.schedule.timeline import Timeline, block_ticks
from pipesched.validation.gather_rules import tied_by_gathers
from pipesched.validation.memory_rule import host_name
from pipesched.validation.pass_rules import (
    all_tasks,
    dropped,
    for_one,
    host_changes,
    memory_changes,
    needed,
    needed_of_others,
    needs_input,
    own_tasks,
)
from pipesched.validation.task_order_rules import streams_of
from pipesched.validation.violation import Violation


def memory_by_order(timeline: Timeline) -> Iterator[Violation]:
    """At most one violation a device or host, the first by time; of timelines that break no rule of order and times."""
    problem = timeline.problem
    limits = [*problem.room, *(host.capacity for host in problem.host_pools)]
    if len(problem.streams) == 1 or all(capacity is None for capacity in limits):
        return
    known = _Known(timeline)
    again: dict[tuple[int, int], int] = {}
    for p in timeline.schedule.passes():
        if p.kind in RECOMPUTATIONS:
            again[p.stage, p.microbatch] = for_one(problem, (dropped(problem, p.kind, p.stage), 0), p.microbatch)[0]

    def changes(p: Pass) -> tuple[int, int]:
        at_start, at_end = for_one(problem, memory_changes(problem, p.kind, p.stage), p.microbatch)
        return at_start, at_end - (again.get((p.stage, p.microbatch), 0) if p.kind is F else 0)

    for device, capacity in enumerate(problem.room):
        if capacity is not None:
            passes = sorted(timeline.schedule.passes_on(device), key=timeline.start)
            memory = _Memory(f"device {device}", capacity, problem.static[device])
            yield from _first_above(problem, known, passes, list(map(changes, passes)), memory)
    for host_capacity, devices in problem.host_pools:
        if host_capacity is not None:
            passes = [p for device in devices for p in timeline.schedule.passes_on(device)]
            passes.sort(key=timeline.start)
            copies = [for_one(problem, host_changes(problem, p.kind, p.stage), p.microbatch) for p in passes]
            yield from _first_above(problem, known, passes, copies, _Memory(host_name(devices), host_capacity, None))


class _Memory(NamedTuple):
    """A memory: what it is called, its capacity for what passes take, and what it holds besides; None for a host's."""

    name: str
    capacity: int
    static: int | None


def _first_above(
    problem: Problem, known: _Known, passes: Sequence[Pass], changes: Sequence[tuple[int, int]], memory: _Memory
) -> Iterator[Violation]:
    """The first pass for which not enough is surely there when it starts, each with what it takes and gives back."""
    taking = [(p, at_start) for p, (at_start, _) in zip(passes, changes, strict=True) if at_start > 0]
    giving = [(p, -at_end) for p, (_, at_end) in zip(passes, changes, strict=True) if at_end < 0]
    ends = np.array([known.when_ended(p) for p, _ in giving], np.int64).reshape(len(giving), known.streams)
    starts = np.array([known.at_start(p) for p, _ in taking], np.int64).reshape(len(taking), known.streams)
    given = np.array([(row >= ends).all(axis=1) for row in starts], bool).reshape(len(taking), len(giving))
    units = _Units(given, [amount for _, amount in giving], memory.capacity)
    for row, (p, amount) in enumerate(taking):
        state = units.hand_out(row, amount)
        if state:
            away = np.flatnonzero(given[state].any(axis=0)).tolist()
            held = sum(taking[one][1] for one in state) - sum(giving[one][1] for one in away)
            static = memory.static or 0
            most, limit = memory_text(problem, held + static), memory_text(problem, memory.capacity + static)
            text = (
                f"{memory.name} may hold {most} when {pass_text(problem, p)} starts, if tasks take other times: its "
                f"orders and waits do not let it wait for what gives memory back; its capacity is {limit}"
            )
            yield Violation("memory", (p,), text)
            return


class _Units:
    """Units of a memory and who has them; `given[t, g]` says whether giver g has surely ended when taker t starts."""

    def __init__(self, given: NDArray[np.bool_], amounts: Sequence[int], stock: int) -> None:
        # The last source is the stock, which anyone may take; before it come first those that the fewest may take.
        self._order = [*np.argsort(given.sum(axis=0), kind="stable").tolist(), len(amounts)]
        self._open = np.append(given, np.ones((len(given), 1), bool), axis=1)[:, self._order]
        self._left = [*amounts, stock]
        self._users: list[dict[int, int]] = [{} for _ in self._left]

    def hand_out(self, taker: int, amount: int) -> list[int]:
        """Give a taker so much; if that cannot be, the takers of a state that holds too much."""
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

    def _search(self, taker: int) -> tuple[int | None, dict[int, int], dict[int, int | None]]:
        """A source with some left, by a shortest chain of exchanges.

        With the taker that asks for each source, and for each taker the source of which it would free what it has.
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


class _Known:
    """For every task how many of the tasks at the head of each stream have surely ended when it starts.

    Streams run their tasks in order, so these numbers tell of any two tasks whether one surely ends before the other
    starts (vector clocks: Mattern, Virtual time and global states of distributed systems, 1989).
    """

    def __init__(self, timeline: Timeline) -> None:
        problem, schedule = timeline.problem, timeline.schedule
        self._problem = problem
        self._block = {
            p: Task(slot[0])
            for order in schedule.orders
            for slot in order
            if block_ticks(problem, slot) is not None
            for p in slot
        }
        streams = streams_of(problem, schedule)
        self.streams = len(streams)
        self._places = {task: (n, k) for n, tasks in enumerate(streams.values()) for k, task in enumerate(tasks)}
        before: dict[Task, list[Task]] = {task: [] for task in self._places}
        for tasks in streams.values():
            for one, other in pairwise(tasks):
                before[other].append(one)
        for wait in schedule.waits:
            before[self._task(wait.after)].append(self._task(wait.before))
        for p in schedule.passes():
            for one, other in self._inside(p, schedule.pass_set):
                before[other].append(one)
        for earlier, later in tied_by_gathers(problem, schedule):
            for one, other in product(self._parts(earlier), self._parts(later)):
                before[other].append(one)
        self._clocks = self._ended(before)

    def _parts(self, p: Pass) -> list[Task]:
        return [self._task(Task(p, part)) for part in range(len(own_tasks(self._problem, p.kind, p.stage)))]

    def _task(self, task: Task) -> Task:
        return self._block.get(task.of, task)

    def first(self, p: Pass) -> Task:
        """The task with which a pass starts to hold memory."""
        return self._task(Task(p))

    def place(self, task: Task) -> tuple[int, int]:
        """The stream of a task and its place there."""
        return self._places[task]

    def at_start(self, p: Pass) -> Ints:
        """How many tasks of each stream have ended when a pass starts."""
        return self._clocks[self.first(p)]

    def when_ended(self, p: Pass) -> Ints:
        """How many tasks of each stream must have ended for a pass to have."""
        needed_of = np.zeros(self.streams, np.int64)
        count = len(own_tasks(self._problem, p.kind, p.stage))
        for part in range(count) if p.kind is W else (count - 1,):
            stream, place = self.place(self._task(Task(p, part)))
            needed_of[stream] = max(needed_of[stream], place + 1)
        return needed_of

    def _inside(self, p: Pass, held: frozenset[Pass]) -> Iterator[tuple[Task, Task]]:
        """What the problem says of the tasks of a pass: each with one that it waits for, that one first."""
        problem = self._problem
        if p.kind is W:
            backward, last = p._replace(kind=B), len(own_tasks(problem, B, p.stage)) - 1
            for part, task in enumerate(own_tasks(problem, W, p.stage)):
                yield Task(backward, last if task.after is None else task.after), Task(p, part)
            return
        if p not in self._block:
            yield from pairwise(Task(p, part) for part in range(len(all_tasks(problem, p.kind, p.stage))))
        own = ((Pass(kind, stage, p.microbatch), lag) for kind, stage, lag in needed(problem, p.kind, p.stage))
        for other, lag in (*own, *((other, 0) for other in needed_of_others(problem, p))):
            if other in held:
                sent = 1 if lag and problem.transfer_stream is not None else 0
                last = len(own_tasks(problem, other.kind, other.stage)) - 1 + sent
                for part in range(last + 1) if other.kind is W else (last,):
                    yield self._task(Task(other, part)), self._task(Task(p, needs_input(problem, p.kind, p.stage)))

    def _ended(self, before: dict[Task, list[Task]]) -> dict[Task, Ints]:
        """The numbers of every task, each after those that it waits for."""
        after: dict[Task, list[Task]] = {task: [] for task in before}
        missing = {task: len(tasks) for task, tasks in before.items()}
        for task, tasks in before.items():
            for one in tasks:
                after[one].append(task)
        ready = [task for task, count in missing.items() if count == 0]
        clocks = dict.fromkeys(ready, np.zeros(self.streams, np.int64))
        for task in ready:
            stream, place = self._places[task]
            done = clocks[task].copy()
            done[stream] = place + 1
            for other in after[task]:
                clocks[other] = np.maximum(clocks[other], done) if other in clocks else done
                missing[other] -= 1
                if missing[other] == 0:
                    ready.append(other)
        return clocks
