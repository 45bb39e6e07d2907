"""What every stream of every device runs, task by task, and which tasks of other streams each one waits for.

A runtime makes each wait an event (on one device) or the receipt of a tensor (from another). The waits are those of the
problem and the schedule's own; what runs earlier on the same stream needs none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipesched.problem.passes import Pass, Task
from pipesched.problem.task_network import Resource
from pipesched.schedule.stream_orders import stream_orders
from pipesched.schedule.timeline import Timeline


@dataclass(frozen=True)
class Step:
    """A task, and the tasks of other streams that must have ended before it starts."""

    task: Task
    waits: tuple[Task, ...]


def stream_programs(timeline: Timeline) -> dict[Resource, list[Step]]:
    """The steps of every stream, in order. Of problems without overlapped blocks."""
    problem, schedule = timeline.problem, timeline.schedule
    orders = stream_orders(problem, schedule)
    runs_on = {task: resource for resource, tasks in orders.items() for task in tasks}
    events: dict[Task, list[Task]] = {}
    for before, after in schedule.waits:
        events.setdefault(after, []).append(before)
    return {
        resource: [
            Step(
                task,
                tuple(
                    dict.fromkeys(
                        t for t in (*_needed(timeline, task), *events.get(task, ())) if runs_on[t] != resource
                    )
                ),
            )
            for task in tasks
        ]
        for resource, tasks in orders.items()
    }


def _needed(timeline: Timeline, task: Task) -> Iterator[Task]:
    """What the problem says must have ended before a task; of alternatives, the one that runs."""
    for after, alternatives, _ in timeline.problem.network.arcs_into[task.of.kind, task.of.stage]:
        if after.part == task.part:
            passes = [(Pass(kind, stage, task.of.microbatch), part) for kind, stage, part in alternatives]
            yield next(Task(p, part) for p, part in passes if p in timeline.schedule.held)
