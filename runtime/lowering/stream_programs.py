"""The program of every stream of every device, task by task, with the tasks of other streams that each waits for.

A runtime turns each wait into an event (on one device) or the receipt of a tensor (from another). The waits are those
of the problem and the schedule's own; earlier tasks of the same stream need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Pass, Task
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline


class Step(NamedTuple):
    """A task, and the tasks of other streams that must have ended before it starts (`waits`)."""

    task: Task
    waits: tuple[Task, ...]


def stream_programs(timeline: Timeline) -> dict[Resource, list[Step]]:
    """Return the steps of every stream, in order; for problems without overlapped blocks.

    A task that occupies several streams is a step of each. Raises `Deadlock` if such tasks have no places in the
    orders.
    """
    orders = stream_orders(timeline.problem, timeline.schedule)
    events: dict[Task, list[Task]] = {}
    for before, after in timeline.schedule.waits:
        events.setdefault(after, []).append(before)

    def steps(tasks: Sequence[Task]) -> Iterator[Step]:
        here = set(tasks)
        for task in asking(tasks, SHORT):
            needed = dict.fromkeys((*needed_by(timeline, task), *events.get(task, ())))
            yield Step(task, tuple(other for other in needed if other not in here))

    return {resource: [*steps(tasks)] for resource, tasks in orders.items()}


def needed_by(timeline: Timeline, task: Task) -> Iterator[Task]:
    """Yield the tasks that a task follows by the problem, on any device; of alternatives, the one that runs.

    Earlier tasks of its stream and waits of the schedule are not included.
    """
    for after, alternatives, _, _, share in timeline.problem.network.arcs_into[task.of.kind, task.of.stage]:
        if after.part == task.part:
            numbers = (task.of.microbatch,) if share is None else share.numbers(task.of.microbatch)
            passes = [(Pass(kind, stage, j), part) for j in numbers for kind, stage, part in alternatives]
            yield from (Task(p, part) for p, part in passes if p in timeline.schedule.pass_set)
