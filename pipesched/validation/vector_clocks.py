"""Tasks that have certainly ended when a task starts, under any durations: by stream orders, waits and precedences."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from pipesched.problem.passes import B, Pass, Task, W
from pipesched.schedule.pass_table import Ints
from pipesched.schedule.timeline import Timeline, block_ticks
from pipesched.validation.gather_rules import tied_by_gathers
from pipesched.validation.pass_rules import all_tasks, awaits, needed, needed_of_others, own_tasks, waited_for
from pipesched.validation.task_order_rules import streams_of


class VectorClocks:
    """For every task, the number of tasks at the head of each stream that have certainly ended when it starts.

    `streams` is the number of streams of all devices; results by stream are arrays of that length, in one fixed order.
    Streams run their tasks in order, so these numbers show for any two tasks if one certainly ends before the other
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
        # Of a task on several streams one is enough to tell that it has ended.
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
        """Return the task with which a pass starts to use memory."""
        return self._task(Task(p))

    def place(self, task: Task) -> tuple[int, int]:
        """Return the number of a task's stream and the task's index in the order there."""
        return self._places[task]

    def at_start(self, p: Pass) -> Ints:
        """Return by stream the number of its tasks that have certainly ended when a pass starts."""
        return self._clocks[self.first(p)]

    def when_ended(self, p: Pass) -> Ints:
        """Return by stream the number of its tasks that must have ended for a pass to have ended."""
        needed_of = np.zeros(self.streams, np.int64)
        count = len(own_tasks(self._problem, p.kind, p.stage))
        for part in range(count) if p.kind is W else (count - 1,):
            stream, place = self.place(self._task(Task(p, part)))
            needed_of[stream] = max(needed_of[stream], place + 1)
        return needed_of

    def _inside(self, p: Pass, passes: frozenset[Pass]) -> Iterator[tuple[Task, Task]]:
        """Yield (predecessor, task) for the tasks of a pass.

        Predecessors are those before the task in the same pass, or in passes that it needs.
        """
        problem = self._problem
        if p.kind is W:
            backward, last = p._replace(kind=B), len(own_tasks(problem, B, p.stage)) - 1
            for part, task in enumerate(own_tasks(problem, W, p.stage)):
                yield Task(backward, last if task.after is None else task.after), Task(p, part)
            return
        if p not in self._block:
            yield from pairwise(Task(p, part) for part in range(len(all_tasks(problem, p.kind, p.stage))))
        own = [(Pass(kind, stage, p.microbatch), lag) for kind, stage, lag in needed(problem, p.kind, p.stage)]
        neighbours = {other.stage for other, _ in own} - {p.stage}
        for other, lag in (*own, *needed_of_others(problem, p)):
            if other in passes:
                sent = 1 if lag and problem.resources.transfer_stream is not None else 0
                begins = awaits(problem, p.kind, p.stage, other.stage if other.stage in neighbours else None)
                for part in (n + sent for n in waited_for(problem, p, other)):
                    yield self._task(Task(other, part)), self._task(Task(p, begins))

    def _ended(self, before: dict[Task, list[Task]]) -> dict[Task, Ints]:
        """Return by task the number of tasks of each stream that have certainly ended when it starts.

        `before` are the predecessors of each task; a clock is computed after theirs.
        """
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
