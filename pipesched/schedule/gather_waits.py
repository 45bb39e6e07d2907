"""Waits of gatherings that are the first task of every pass, for schedules that order whole passes only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipesched.problem.features.gather_each_pass import gathering_of, gathers_each_pass
from pipesched.problem.passes import Pass, Task
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId
from pipesched.schedule.schedule import Schedule, Wait


def with_gather_waits(problem: Problem, schedule: Schedule) -> Schedule:
    """Return the schedule with waits by which parameters are gathered at most one pass ahead, as FSDP prefetches.

    Where memory forbids that, a gathering waits for the pass before it to end. The schedule is returned unchanged if no
    pass begins with a gathering, or if it has orders of tasks or waits already.
    """
    if schedule.task_orders or schedule.waits or not gathers_each_pass(problem.stages):
        return schedule
    waits = [wait for device, order in enumerate(schedule.orders)
             for wait in _waits(problem, device, [p for slot in order for p in slot])]  # fmt: skip
    return Schedule(schedule.orders, schedule.name, {}, waits)


def _waits(problem: Problem, device: DeviceId, passes: Sequence[Pass]) -> Iterator[Wait]:
    """Yield the wait of each gathering on another stream: for the last but one pass, so that it is one pass ahead.

    If memory does not hold the parameters of both, it waits for the last pass.
    """
    room, change, first = problem.room[device], problem.network.change, problem.streams[0]
    ended = 0  # memory after all passes but the previous one
    before: list[Pass] = []
    for p in passes:
        took = change[p[:2]].at_start
        gathering = gathering_of(problem.stages[p.stage])
        if gathering and gathering.stream != first and problem.tasks_of(*p[:2])[0] == gathering and before:
            both = ended + change[before[-1][:2]].at_start + took
            awaited = before[-2:-1] if room is None or both <= room else before[-1:]
            yield from (Wait(Task(one, problem.network.ends[one[:2]][-1]), Task(p)) for one in awaited)
        if before:
            ended += sum(change[before[-1][:2]])
        if gathering or problem.tasks_of(*p[:2])[0].stream == first:
            before = [*before[-1:], p]
