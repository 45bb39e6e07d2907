"""Gathering of parameters before every pass and dropping them after it, as FSDP does with resharding after each pass.

The gathering is the first task of each F, B and BW. It needs no other pass, so it may run while the device computes
another one; its memory is workspace of the pass. A W needs activations and gradients only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.problem.stage import PassMemory, Stage, TaskSpec

_GATHERING, _COMPUTING = "gather", "compute"


def gathering_each_pass(stage: Stage, stream: str, ticks: Ticks, memory: MemorySteps) -> Stage:
    """Return the stage with a gathering task on `stream` before each F, B and BW.

    The task takes `ticks` and uses `memory` as workspace. Backwards of a stage that only runs forwards get none.
    """
    kinds = (F,) if stage.forward_only else tuple(kind for kind in (F, B, BW) if kind in stage.kinds)
    names = {task.name for _, own in stage.tasks for task in own}
    name = _GATHERING
    while name in names:
        name = f"{name}-parameters"
    gathering = TaskSpec(stream, ticks, name, needs_input=False, gathers=True)
    tasks = dict(stage.tasks)
    for kind in kinds:
        own = tasks.get(kind) or tuple(task._replace(name=_COMPUTING) for task in stage.tasks_of(kind))
        tasks[kind] = (gathering, *own)
    if W in tasks and B in kinds:
        tasks[W] = _moved(tasks[W], 1)
    space = stage.workspace
    backward = space.backward + memory if len(kinds) > 1 else space.backward
    workspace = PassMemory(space.forward + memory, backward, space.weight)
    return replace(stage.with_tasks(tasks), workspace=workspace)


def computing_alone(stage: Stage) -> Stage:
    """Return the stage without its gathering tasks, whose memory stays as workspace.

    The stage itself if it has none.
    """
    if gathering_of(stage) is None:
        return stage
    tasks = {kind: own[1:] if own[0].gathers else own for kind, own in stage.tasks}
    if W in tasks and dict(stage.tasks)[B][0].gathers:
        tasks[W] = _moved(tasks[W], -1)
    found = stage.with_tasks(tasks)
    # A single task with a name of its own stays: orders of tasks name it.
    plain = W not in tasks and all(
        len(own) == 1 and (own[0].stream, own[0].name) == (stage.stream, _COMPUTING) for own in tasks.values()
    )
    return replace(found, tasks=()) if plain else found


def gathering_of(stage: Stage) -> TaskSpec | None:
    """Return the task that gathers a stage's parameters before each pass; None where there is none."""
    return next((task for _, own in stage.tasks for task in own if task.gathers), None)


def gathers_each_pass(stages: Sequence[Stage]) -> bool:
    """Return True if some stage gathers its parameters before each pass."""
    return any(gathering_of(stage) for stage in stages)


def _moved(weight: Sequence[TaskSpec], places: int) -> tuple[TaskSpec, ...]:
    """Return tasks of W in which each index of a task of B to wait for is increased by `places`."""
    return tuple(task if task.after is None else task._replace(after=task.after + places) for task in weight)
