"""The order of tasks on every stream: as a schedule gives it, or one pass after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.tasks_at_once import tasks_in_turn, visits_of
from pipesched.schedule.timeline import block_ticks


def stream_orders(problem: Problem, schedule: Schedule) -> Mapping[Resource, Sequence[Task]]:
    """Return by stream of a device its tasks in order; a block is its forward's first task, on the first stream.

    Tasks that occupy streams of several devices, and have no order there, get one in which they can run; raises
    `Deadlock` where there is none.
    """
    visits = visits_of(problem, schedule) if problem.network.occupies_several else []
    if schedule.task_orders:
        return tasks_in_turn(problem, schedule, schedule.task_orders, visits) if visits else schedule.task_orders
    found: dict[Resource, list[Task]] = {}
    for device, order in enumerate(schedule.orders):
        for slot in asking(order, SHORT):
            if block_ticks(problem, slot) is not None:
                found.setdefault(Resource(device, problem.streams[0]), []).append(Task(slot[0]))
                continue
            for p in slot:
                for task, part in problem.tasks(p):
                    streams = (part.stream, *(stream for other, stream in part.also if other == device))
                    for stream in dict.fromkeys(streams) if part.also else (part.stream,):
                        found.setdefault(problem.resources.on_device(device, stream), []).append(task)
    return tasks_in_turn(problem, schedule, found, visits) if visits else found
