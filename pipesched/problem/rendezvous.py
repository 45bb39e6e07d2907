"""Blocking transfers: each occupies a stream of its sender and of its receiver at the same time (`both` in files).

Each pass that gets a tensor from another device begins with its *receipt*: a task as long as the transfer, on the
stream of its own device and `also` on that of the sender. The pass holds its memory from this task on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pipesched.problem.features.device_resources import SENDING
from pipesched.problem.network.task_network import Resource
from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, TaskPart, Ticks
from pipesched.problem.stage import Stage, TaskSpec

_COMPUTING = "compute"

# Of the sending and the receiving stage the ticks of the transfer.
Times = Mapping[tuple[StageId, StageId], Ticks]


def with_receipts(problem: Problem) -> Problem:
    """Return the problem with blocking transfers: tasks of the receiving passes that occupy a stream of both devices.

    In the given problem each transfer is a task of its sender. In the returned one every transfer between neighbours on
    a chain that takes time is the first task of its receiver's pass that needs an input, and none is a mere delay.
    """
    stages = tuple(replace(_receiving(problem, s, stage), transfer=0) for s, stage in enumerate(problem.stages))
    return replace(problem, stages=stages, links=(), resources=replace(problem.resources, transfer_stream=None))


def without_receipts(problem: Problem) -> Problem:
    """Undo `with_receipts`: return the problem with transfers as tasks of their senders; itself if none is blocking."""
    stream = next((task.stream for stage in problem.stages for task in _receipts(stage).values()), None)
    if stream is None:
        return problem
    times = _times(problem)
    forth = {sender: ticks for (sender, receiver), ticks in times.items() if problem.placement.next[sender] == receiver}
    stages = [replace(_without(stage), transfer=forth.get(s, 0)) for s, stage in enumerate(problem.stages)]
    links = tuple[tuple[int, ...], ...]()
    if any(_back(problem, times, s) != stage.transfer for s, stage in enumerate(stages)):
        where, matrix = problem.placement.stage_device, [[0] * problem.devices for _ in range(problem.devices)]
        for (sender, receiver), ticks in times.items():
            matrix[where[sender]][where[receiver]] = ticks
        stages, links = [replace(stage, transfer=0) for stage in stages], tuple(map(tuple, matrix))
    resources = replace(problem.resources, transfer_stream=stream)
    return replace(problem, stages=tuple(stages), links=links, resources=resources)


def receives(problem: Problem) -> bool:
    """Return True if the problem has blocking transfers."""
    return any(_receipts(stage) for stage in problem.stages)


def _receiving(problem: Problem, number: StageId, stage: Stage) -> Stage:
    where, stream = problem.placement, str(problem.resources.transfer_stream)
    tasks = dict(stage.tasks)
    for kind, sender in _senders(problem, number):
        ticks = problem.lag(sender, number)
        if ticks:
            own = tasks.get(kind) or tuple(task._replace(name=_COMPUTING) for task in stage.tasks_of(kind))
            entry, there = stage.entry(kind), (Resource(where.stage_device[sender], stream),)
            receipt = TaskSpec(stream, ticks, SENDING, receives=True, also=there)
            tasks[kind] = (*own[:entry], receipt, *own[entry:])
            if kind is B and W in tasks:
                tasks[W] = _moved(tasks[W], entry, 1)
    return stage.with_tasks(tasks) if tasks != dict(stage.tasks) else stage


def _senders(problem: Problem, stage: StageId) -> Iterator[tuple[PassKind, StageId]]:
    """Yield the kinds of passes of a stage that may get a tensor, each with the stage that sends it."""
    previous, following = problem.placement.previous[stage], problem.placement.next[stage]
    if previous is not None:
        yield F, previous
    if following is not None:
        yield from ((kind, following) for kind in (B, BW) if kind in problem.stages[stage].kinds)


def _receipts(stage: Stage) -> dict[PassKind, TaskSpec]:
    return {kind: task for kind, own in stage.tasks for task in own if task.receives}


def _times(problem: Problem) -> Times:
    return {
        (sender, s): _receipts(stage)[kind].ticks
        for s, stage in enumerate(problem.stages)
        for kind, sender in _senders(problem, s)
        if kind in _receipts(stage)
    }


def _back(problem: Problem, times: Times, stage: StageId) -> Ticks:
    """Return the transfer ticks of the gradient from the next stage to `stage`; 0 for the last stage of a chain.

    For a stage that gets no gradient they are those of its activation to the next stage, so that both directions agree.
    """
    following = problem.placement.next[stage]
    if following is None:
        return 0
    if problem.stages[stage].forward_only:
        return times.get((stage, following), 0)
    return times.get((following, stage), 0)


def _without(stage: Stage) -> Stage:
    tasks = dict(stage.tasks)
    receipt = next((part for part, task in enumerate(tasks.get(B, ())) if task.receives), None)
    if receipt is not None and W in tasks:
        tasks[W] = _moved(tasks[W], receipt + 1, -1)
    tasks = {kind: tuple(task for task in own if not task.receives) for kind, own in tasks.items()}
    found = stage.with_tasks(tasks)
    plain = all(len(own) == 1 and own[0][:3] == (stage.stream, own[0].ticks, _COMPUTING) for own in tasks.values())
    return replace(found, tasks=()) if plain else found


def _moved(weight: Sequence[TaskSpec], since: TaskPart, places: int) -> tuple[TaskSpec, ...]:
    """Return tasks of W in which each `after` of at least `since` is increased by `places`.

    `since` is an index of a task of B.
    """
    moved = (task.after is not None and task.after >= since for task in weight)
    return tuple(
        task._replace(after=task.after + places) if later and task.after is not None else task
        for task, later in zip(weight, moved, strict=True)
    )
