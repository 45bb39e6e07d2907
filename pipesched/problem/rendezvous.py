"""Blocking sends and receives: a transfer occupies a stream of its sender and of its receiver at the same time.

Each pass that gets a tensor from another device begins with a task that receives it, as long as the transfer. It and
the sender's task start together (rendezvous). The pass holds its memory from the receipt on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage, TaskSpec

RECEIVING = "receive"
_COMPUTING = "compute"


def with_receipts(problem: Problem) -> Problem:
    """The problem whose transfers, which occupy a stream of their sender, occupy that of their receiver as well."""
    stages = tuple(_receiving(problem, s, stage) for s, stage in enumerate(problem.stages))
    return replace(problem, stages=stages, resources=replace(problem.resources, rendezvous=True))


def without_receipts(problem: Problem) -> Problem:
    """The problem of which `with_receipts` makes this one; itself where only senders take part."""
    if not problem.resources.rendezvous:
        return problem
    stages = tuple(map(_without, problem.stages))
    return replace(problem, stages=stages, resources=replace(problem.resources, rendezvous=False))


def _receiving(problem: Problem, number: int, stage: Stage) -> Stage:
    where, stream = problem.placement, str(problem.resources.transfer_stream)
    tasks = dict(stage.tasks)
    for kind, sender in _senders(stage, where.previous[number], where.next[number]):
        ticks = problem.lag(sender, number)
        if ticks:
            own = tasks.get(kind) or tuple(task._replace(name=_COMPUTING) for task in stage.tasks_of(kind))
            entry = stage.entry(kind)
            tasks[kind] = (*own[:entry], TaskSpec(stream, ticks, _name(own), receives=True), *own[entry:])
            if kind is B and W in tasks:
                tasks[W] = _moved(tasks[W], entry, 1)
    return stage.with_tasks(tasks) if tasks != dict(stage.tasks) else stage


def _senders(stage: Stage, previous: int | None, following: int | None) -> Iterator[tuple[PassKind, int]]:
    """The kinds of passes that may get a tensor, each with the stage that sends it."""
    if previous is not None:
        yield F, previous
    if following is not None:
        yield from ((kind, following) for kind in (B, BW) if kind in stage.kinds)


def _name(tasks: Sequence[TaskSpec]) -> str:
    """A name that no task of the pass has."""
    name = RECEIVING
    while any(task.name == name for task in tasks):
        name = f"{name}-tensor"
    return name


def _without(stage: Stage) -> Stage:
    tasks = dict(stage.tasks)
    receipt = next((part for part, task in enumerate(tasks.get(B, ())) if task.receives), None)
    if receipt is not None and W in tasks:
        tasks[W] = _moved(tasks[W], receipt + 1, -1)
    tasks = {kind: tuple(task for task in own if not task.receives) for kind, own in tasks.items()}
    found = stage.with_tasks(tasks)
    plain = all(len(own) == 1 and own[0][:3] == (stage.stream, own[0].ticks, _COMPUTING) for own in tasks.values())
    return replace(found, tasks=()) if plain else found


def _moved(weight: Sequence[TaskSpec], since: int, places: int) -> tuple[TaskSpec, ...]:
    """Tasks of W for a B whose tasks from `since` on move by so many places."""
    moved = (task.after is not None and task.after >= since for task in weight)
    return tuple(
        task._replace(after=task.after + places) if later and task.after is not None else task
        for task, later in zip(weight, moved, strict=True)
    )
