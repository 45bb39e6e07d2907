"""The place of tasks that occupy several resources at once, for a schedule that orders passes alone.

They are blocking transfers and the norm of all gradients. Such a task has its place with its pass on the device of that
pass. On another device it follows the pass of that device that it waits for, as a send follows the pass that yields the
tensor. Between two tasks that occupy one resource, those that occupy several may run in any order: runtimes launch a
send and a receipt together (`send_forward_recv_backward` of Megatron-Core). Here they run one after the other, as soon
as all of their resources can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import groupby, pairwise
from typing import NamedTuple

from pipesched.deadline import SHORT, asking
from pipesched.errors import Deadlock
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import Ticks
from pipesched.schedule.schedule import Schedule

_Orders = Mapping[Resource, Sequence[Task]]


class Visit(NamedTuple):
    """A task on a further resource that it occupies, `where`, after the pass `after` of that device.

    None as `after`: anywhere in the order.
    """

    where: Resource
    task: Task
    after: Pass | None


def visits_of(problem: Problem, schedule: Schedule) -> list[Visit]:
    """Return the visits: a task that occupies several resources, on each of them in whose order it is not listed.

    An order of passes lists the tasks of its own device's passes; an order of tasks lists those that it names.
    """
    listed = {(where, task) for where, tasks in schedule.task_orders.items() for task in tasks}
    place = {p: n for device in range(len(schedule.orders)) for n, p in enumerate(schedule.passes_on(device))}
    found = list[Visit]()
    for p in asking(schedule.passes(), SHORT):
        several = ((part, task) for part, task in enumerate(problem.tasks_of(p.kind, p.stage)) if task.also)
        for part, task in several:
            resources = dict[Resource, int]()  # each with the first device on which the task occupies it
            for device, stream in ((problem.device(p), task.stream), *task.also):
                resources.setdefault(problem.resources.on_device(device, stream), device)
            for where, device in [*resources.items()][1:]:
                if device == problem.device(p) if not listed else (where, Task(p, part)) in listed:
                    continue
                before = (one.of for one in _before(problem, schedule, Task(p, part)))
                here = [one for one in before if problem.device(one) == device and device != problem.device(p)]
                found.append(Visit(where, Task(p, part), max(here, key=place.__getitem__, default=None)))
    return found


def tasks_in_turn(
    problem: Problem, schedule: Schedule, orders: _Orders, visits: Sequence[Visit]
) -> dict[Resource, tuple[Task, ...]]:
    """Return the orders of all resources with the visits inserted, so that each task of several resources can run.

    `orders` has the tasks of each resource in order, without the visits. Such a task runs at one time on all of its
    resources. Raises `Deadlock`, which names the passes that wait for each other, where that is impossible in every
    order of the tasks between two others.
    """
    needs, placed = _needs(problem, schedule), _with_visits(schedule, orders, visits)
    _in_groups(problem, needs, placed)
    try:
        rank = _ranks(problem, needs)
    except CycleError as error:
        passes = [str(p) for p, _ in groupby(task.of for task in _shortest_cycle(needs, error.args[1][1:]))]
        raise Deadlock(passes[:-1] if len(passes) > 1 and passes[0] == passes[-1] else passes) from None
    every = {where: list(tasks) for where, tasks in placed.items()}
    for visit in visits:
        if visit.after is None:
            every.setdefault(visit.where, []).append(visit.task)
    return {where: tuple(sorted(tasks, key=rank.__getitem__)) for where, tasks in every.items()}


def _with_visits(schedule: Schedule, orders: _Orders, visits: Sequence[Visit]) -> _Orders:
    """Return the orders of resources with the task of each visit after the pass of its device that it follows.

    Visits that may be anywhere are left out.
    """
    place = {p: n for device in range(len(schedule.orders)) for n, p in enumerate(schedule.passes_on(device))}
    found = {where: [(place[task.of], task) for task in tasks] for where, tasks in orders.items()}
    last = {(where, task.of): n for where, tasks in orders.items() for n, task in enumerate(tasks)}
    following: dict[Resource, dict[int, list[Task]]] = {}
    for where, task, after in visits:
        if after is not None:
            here, at = found.setdefault(where, []), last.get((where, after))
            if at is None:  # after all that belongs to this pass or those before it
                at = max((n for n, (number, _) in enumerate(here) if number <= place[after]), default=-1)
            following.setdefault(where, {}).setdefault(at, []).append(task)
    return {
        where: [
            *following.get(where, {}).get(-1, ()),
            *(one for n, (_, task) in enumerate(here) for one in (task, *following.get(where, {}).get(n, ()))),
        ]
        for where, here in found.items()
    }


def _before(problem: Problem, schedule: Schedule, task: Task) -> Iterator[Task]:
    """Yield the tasks of a schedule that a task waits for in the network."""
    p = task.of
    for arc in problem.network.arcs_into[p.kind, p.stage]:
        if arc.after.part == task.part:
            for j in (p.microbatch,) if arc.share is None else arc.share.numbers(p.microbatch):
                named = (Task(Pass(one.kind, one.stage, j), one.part) for one in arc.alternatives)
                yield from (one for one in named if one.of in schedule.pass_set)


def _needs(problem: Problem, schedule: Schedule) -> dict[Task, list[Task]]:
    """Return the predecessors of each task by the network and by waits between streams."""
    needs: dict[Task, list[Task]] = {task: [] for p in schedule.passes() for task, _ in problem.tasks(p)}
    for task in asking([*needs], SHORT):
        needs[task] += _before(problem, schedule, task)
    for before, after in schedule.waits:
        needs[after].append(before)
    return needs


def _in_groups(problem: Problem, needs: dict[Task, list[Task]], orders: _Orders) -> None:
    """Add the orders of resources to `needs`, except between neighbours that occupy several resources."""
    types = problem.network.tasks

    def several(task: Task) -> bool:
        return len(types[task.of.kind, task.of.stage][task.part].resources) > 1

    for tasks in orders.values():
        groups = [
            group
            for at_once, own in groupby(tasks, several)
            for group in ([list(own)] if at_once else [[task] for task in own])
        ]
        for group, following in pairwise(groups):
            for task in following:
                needs[task] += group


def _shortest_cycle(needs: Mapping[Task, Sequence[Task]], through: Sequence[Task]) -> list[Task]:
    """Return the fewest tasks of which each waits for the next, and the last for the first.

    One of them is in `through`.
    """
    found = list[Task]()
    for first in asking(through, SHORT):
        waits: dict[Task, Task] = {}
        near = [first]
        for task in near:
            for one in needs[task]:
                if one not in waits:
                    waits[one] = task
                    near.append(one)
            if first in waits:
                break
        path = [waits[first]]
        while path[-1] != first:
            path.append(waits[path[-1]])
        if not found or len(path) < len(found):
            found = path[::-1]
    return found


def _ranks(problem: Problem, needs: Mapping[Task, Sequence[Task]]) -> dict[Task, tuple[Ticks, int]]:
    """Return for each task its earliest start, and its place in an order by `needs`.

    The start is in ticks, if resources never delay the task. Raises `CycleError` where tasks wait for each
    other in a cycle.
    """
    start: dict[Task, tuple[int, int]] = {}
    end: dict[Task, int] = {}
    for place, task in enumerate(TopologicalSorter(needs).static_order()):
        begun = max((end[before] for before in needs[task]), default=0)
        start[task] = begun, place
        end[task] = begun + problem.tasks_of(task.of.kind, task.of.stage)[task.part].ticks
    return start
