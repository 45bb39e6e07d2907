"""The order of transfers that occupy sender and receiver at once, for a schedule that orders passes alone.

Between two passes a device sends the tensor of the first one and receives that of the second, in either order: runtimes
launch both at once (`send_forward_recv_backward` of Megatron-Core). Here those that could run together run one after
the other, in the order in which both of their devices can, so that no two devices wait for each other. Where even so no
transfer could be the next one, each takes place when its receiver first can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from pipesched.deadline import SHORT, asking
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Pass, Task
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule

_Orders = Mapping[Resource, Sequence[Task]]
# Of each task the tasks that end before it starts.
_Needs = Mapping[Task, Sequence[Task]]


def transfers_in_turn(problem: Problem, schedule: Schedule, orders: _Orders) -> _Orders:
    """The orders of tasks with each transfer at one place in those of both devices.

    `orders` are of passes in turn; they are left as they are where they can never run to their end.
    """
    receipt_of = dict(_pairs(problem, schedule))
    one = receipt_of | {receipt: receipt for receipt in receipt_of.values()}
    try:
        rank = _ranks(problem, _in_groups(_needs(problem, schedule, lambda task: one.get(task, task)), orders, one))
    except CycleError:
        try:
            alone = _needs(problem, schedule, lambda task: task)
            rank = _ranks(problem, _in_groups(alone, orders, {}))
        except CycleError:
            return orders

    def turn(task: Task) -> tuple[int, int]:
        return rank[one.get(task, task)]

    return {where: tuple(sorted(tasks, key=turn)) for where, tasks in orders.items()}


def _pairs(problem: Problem, schedule: Schedule) -> Iterator[tuple[Task, Task]]:
    """Yield pairs of a task that sends and the task that receives from it."""
    passes = schedule.pass_set
    meetings = {meeting.receive.pass_type: meeting for meeting in problem.network.meetings}
    for p in asking(schedule.passes(), SHORT):
        meeting = meetings.get((p.kind, p.stage))
        for send in meeting.sends if meeting else ():
            sender = Pass(send.kind, send.stage, p.microbatch)
            if meeting and sender in passes:
                yield Task(sender, send.part), Task(p, meeting.receive.part)


def _needs(problem: Problem, schedule: Schedule, joined: Callable[[Task], Task]) -> dict[Task, list[Task]]:
    """Return the predecessors of each task by the network and by waits between streams, a transfer as one task."""
    passes = schedule.pass_set
    needs: dict[Task, list[Task]] = {joined(task): [] for p in schedule.passes() for task, _ in problem.tasks(p)}
    for p in asking(schedule.passes(), SHORT):
        for arc in problem.network.arcs_into[p.kind, p.stage]:
            for j in (p.microbatch,) if arc.share is None else arc.share.numbers(p.microbatch):
                named = (Task(Pass(one.kind, one.stage, j), one.part) for one in arc.alternatives)
                predecessors = [joined(task) for task in named if task.of in passes]
                needs[joined(Task(p, arc.after.part))] += predecessors
    for before, after in schedule.waits:
        needs[joined(after)].append(joined(before))
    return needs


def _in_groups(needs: _Needs, orders: _Orders, one: Mapping[Task, Task]) -> _Needs:
    """`needs` with the orders of streams, but for transfers next to each other: these are in any order."""
    found = {task: [*own] for task, own in needs.items()}
    for tasks in orders.values():
        groups: list[list[Task]] = []
        for task in tasks:
            if groups and task in one and groups[-1][-1] in one:
                groups[-1].append(task)
            else:
                groups.append([task])
        for group, following in pairwise(groups):
            for task in following:
                found[one.get(task, task)] += [one.get(before, before) for before in group]
    return found


def _ranks(problem: Problem, needs: _Needs) -> dict[Task, tuple[int, int]]:
    """The earliest start of each task, by ticks alone, and its place among those of one start; `CycleError`."""
    start: dict[Task, tuple[int, int]] = {}
    end: dict[Task, int] = {}
    for place, task in enumerate(TopologicalSorter(needs).static_order()):
        begun = max((end[before] for before in needs[task]), default=0)
        start[task] = begun, place
        end[task] = begun + problem.tasks_of(task.of.kind, task.of.stage)[task.part].ticks
    return start
