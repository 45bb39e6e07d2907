"""Rule: with several streams a schedule keeps its memory whatever its tasks take, by orders and events alone.

A stream's order does not say what has ended on another one. So whatever takes memory must come, on some path of orders,
precedences and events, behind enough of what gives it back; all that is not known to be given back counts as held. What
is given back only for a while, by a copy to the host or a forward that is recomputed, counts as away where it is known
to have gone and known not to have come back yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pipesched.problem.formatting import memory_text
from pipesched.problem.passes import OFFLOAD, RECOMPUTATIONS, RELOAD, B, F, Pass, Task, W
from pipesched.problem.problem import Problem
from pipesched.schedule.pass_table import Ints
from pipesched.schedule.timeline import Timeline, block_ticks
from pipesched.validation.memory_rule import host_name
from pipesched.validation.pass_rules import all_tasks, dropped, for_one, host_changes, memory_changes, needed, own_tasks
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


def _taken_again_by(p: Pass) -> tuple[Pass, ...]:
    """The passes of which one, if it is there, takes again what a pass gave back."""
    if p.kind is OFFLOAD:
        return (p._replace(kind=RELOAD),)
    return tuple(p._replace(kind=kind) for kind in RECOMPUTATIONS) if p.kind is F else ()


class _Memory(NamedTuple):
    """A memory: what it is called, its capacity for what passes take, and what it holds besides; None for a host's."""

    name: str
    capacity: int
    static: int | None


def _first_above(
    problem: Problem, known: _Known, passes: Sequence[Pass], changes: Sequence[tuple[int, int]], memory: _Memory
) -> Iterator[Violation]:
    """The first pass that may start while too much is held, each pass with what it takes and gives back."""
    taking = [p for p, (at_start, _) in zip(passes, changes, strict=True) if at_start > 0]
    first_time = [memory.static is None or not (p.kind is RELOAD or p.kind in RECOMPUTATIONS) for p in taking]
    taken = np.array([at_start for at_start, _ in changes if at_start > 0], object) * np.array(first_time, object)
    giving = [p for p, (_, at_end) in zip(passes, changes, strict=True) if at_end < 0]
    given = np.array([-at_end for _, at_end in changes if at_end < 0], object)
    ends = np.array([known.when_ended(p) for p in giving], np.int64).reshape(len(giving), known.streams)
    starts = np.array([known.at_start(p) for p in taking], np.int64).reshape(len(taking), known.streams)
    row_of = {p: row for row, p in enumerate(taking)}
    # The row of what takes again what each of those gave back, one row more for what is not taken again.
    back = np.array(
        [next((row_of[p] for p in _taken_again_by(p) if p in row_of), len(taking)) for p in giving], np.int64
    )
    for row, p in enumerate(taking):
        stream, place = known.place(known.first(p))
        # What is known to start after p has ended its first task is not held yet.
        begun = starts[:, stream] <= place
        away = (starts[row] >= ends).all(axis=1) & ~np.append(begun, False)[back]
        held = taken[begun].sum() - given[away].sum()
        if held > memory.capacity:
            static = memory.static or 0
            most, limit = memory_text(problem, held + static), memory_text(problem, memory.capacity + static)
            text = (
                f"{memory.name} may hold {most} when {p} starts, if tasks take other times: its orders and waits do "
                f"not let it wait for what gives memory back; its capacity is {limit}"
            )
            yield Violation("memory", (p,), text)
            return


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
        self._clocks = self._ended(before)

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
        for kind, stage, lag in needed(problem, p.kind, p.stage):
            other = Pass(kind, stage, p.microbatch)
            if other in held:
                sent = 1 if lag and problem.transfer_stream is not None else 0
                last = len(own_tasks(problem, kind, stage)) - 1 + sent
                yield self._task(Task(other, last)), self.first(p)

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
