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
    """Return by stream of a device its tasks in order; a block is the first task of its forward, on the first stream.

    A task that occupies streams of several devices may have no place in the orders of some of them; it then gets places
    with which all of its streams can run it. Raises `Deadlock` where there are none.
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
