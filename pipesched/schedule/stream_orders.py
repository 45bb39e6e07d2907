"""The order of tasks on every stream: as a schedule gives it, or one pass after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import block_ticks
from pipesched.schedule.transfers_in_turn import transfers_in_turn


def stream_orders(problem: Problem, schedule: Schedule) -> Mapping[Resource, Sequence[Task]]:
    """Return the tasks of every stream in order; a block is its forward's first task, on the first stream.

    Transfers that occupy both devices have, between two passes, an order in which they can run.
    """
    if schedule.task_orders:
        return schedule.task_orders
    found: dict[Resource, list[Task]] = {}
    for device, order in enumerate(schedule.orders):
        for slot in asking(order, SHORT):
            if block_ticks(problem, slot) is not None:
                found.setdefault(Resource(device, problem.streams[0]), []).append(Task(slot[0]))
                continue
            for p in slot:
                for task, part in problem.tasks(p):
                    found.setdefault(problem.resources.on_device(device, part.stream), []).append(task)
    return transfers_in_turn(problem, schedule, found) if problem.network.meetings else found
