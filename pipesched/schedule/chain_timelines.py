"""Conversion of schedules and timelines between a problem with unequal micro-batches and its equivalent with chains."""

from __future__ import annotations

from collections.abc import Callable

from pipesched.problem.chains.microbatch_chains import MicrobatchChains
from pipesched.problem.passes import Pass, Slot, Task
from pipesched.problem.rescale import finer
from pipesched.schedule.schedule import Schedule, Wait
from pipesched.schedule.timeline import Timeline

Renaming = Callable[[Pass], Pass]


def schedule_back(chains: MicrobatchChains, schedule: Schedule) -> Schedule:
    """Convert a schedule of the problem with chains to one of the unequal micro-batches."""
    return _renamed(schedule, chains.back)


def timeline_into(chains: MicrobatchChains, timeline: Timeline) -> Timeline:
    """Convert a timeline of the unequal micro-batches, possibly in finer ticks, to one of the problem with chains.

    Its ticks stay the same.
    """
    parts = int(chains.of.tick / timeline.problem.tick)
    starts = {_task(task, chains.into): start for task, start in timeline.starts.items()}
    return Timeline(finer(chains.problem, parts), _renamed(timeline.schedule, chains.into), starts)


def timeline_back(chains: MicrobatchChains, timeline: Timeline) -> Timeline:
    """Convert a timeline of the problem with chains, possibly in finer ticks, to one of the unequal micro-batches.

    Its ticks stay the same.
    """
    parts = int(chains.problem.tick / timeline.problem.tick)
    starts = {_task(task, chains.back): start for task, start in timeline.starts.items()}
    return Timeline(finer(chains.of, parts), _renamed(timeline.schedule, chains.back), starts)


def _renamed(schedule: Schedule, rename: Renaming) -> Schedule:
    def slot(passes: Slot) -> Slot:
        return (rename(passes[0]),) if len(passes) == 1 else (rename(passes[0]), rename(passes[1]))

    orders = tuple(tuple(map(slot, order)) for order in schedule.orders)
    tasks = {where: tuple(_task(task, rename) for task in order) for where, order in schedule.task_orders.items()}
    waits = [Wait(_task(before, rename), _task(after, rename)) for before, after in schedule.waits]
    return Schedule(orders, schedule.name, tasks, waits)


def _task(task: Task, rename: Renaming) -> Task:
    return Task(rename(task.of), task.part)
