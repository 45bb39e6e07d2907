"""Rules for orders of tasks: each stream lists its tasks once, and waits between streams name tasks that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import Pass, PassKind, Task
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import block_ticks
from pipesched.validation.order_rules import often
from pipesched.validation.pass_rules import all_tasks, stream_owner, streams_besides
from pipesched.validation.violation import Violation


def task_orders(problem: Problem, schedule: Schedule) -> Iterator[Violation]:
    """Yield violations unless every stream orders each of its tasks exactly once and no other."""
    expected = tasks_of(problem, schedule)
    for resource, task in _besides(problem, schedule):
        expected.setdefault(resource, []).append(task)
    if schedule.task_orders:
        for resource in sorted(expected.keys() | schedule.task_orders.keys()):
            given, own = Counter(schedule.task_orders.get(resource, ())), Counter(expected.get(resource, ()))
            where = f"device {resource.device}, {resource.stream}"
            for task in sorted((given - own) | (own - given)):
                name = problem.task_text(task)
                text = f"{where}: {name} is in the order of tasks {often(given[task])}; it must be {often(own[task])}"
                yield Violation("complete", (task.of,), text)
    tasks_there = {task for tasks in expected.values() for task in tasks}
    for wait in schedule.waits:
        for task in wait:
            if task not in tasks_there:
                text = f"a wait between streams names {problem.task_text(task)}, which the schedule does not run"
                yield Violation("complete", (task.of,), text)


def streams_of(problem: Problem, schedule: Schedule) -> Mapping[Resource, Sequence[Task]]:
    """Return the order of tasks on each stream: as the schedule gives it, or pass by pass."""
    return schedule.task_orders or tasks_of(problem, schedule)


def tasks_of(problem: Problem, schedule: Schedule) -> dict[Resource, list[Task]]:
    """Return the tasks of each stream, pass by pass; a block is the first task of its forward on the first stream.

    A task that also occupies streams besides that of its pass is listed on the latter alone.
    """
    found: dict[Resource, list[Task]] = {}
    parts = _parts(problem, schedule.passes())
    for device, order in enumerate(schedule.orders):
        for slot in order:
            if block_ticks(problem, slot) is not None:
                found.setdefault(Resource(device, problem.streams[0]), []).append(Task(slot[0]))
                continue
            for p in slot:
                for number, part in enumerate(parts[p.kind, p.stage]):
                    owner = stream_owner(problem, device, part.stream)
                    found.setdefault(Resource(owner, part.stream), []).append(Task(p, number))
    return found


def _besides(problem: Problem, schedule: Schedule) -> Iterator[tuple[Resource, Task]]:
    """Yield (stream, task) for each stream that a task occupies in addition to that of its pass."""
    parts = _parts(problem, schedule.passes())
    for p in schedule.passes() if any(task.also for tasks in parts.values() for task in tasks) else ():
        for number, task in enumerate(parts[p.kind, p.stage]):
            for where in streams_besides(problem, problem.device(p), task):
                yield where, Task(p, number)


def _parts(problem: Problem, passes: Iterable[Pass]) -> dict[tuple[PassKind, int], tuple[TaskSpec, ...]]:
    return {pass_type: all_tasks(problem, *pass_type) for pass_type in {(p.kind, p.stage) for p in passes}}
