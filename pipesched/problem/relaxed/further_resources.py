"""Relaxation: a task, such as a blocking transfer, occupies one stream alone, that of its own device."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage

ARGUMENT = (
    "Tasks that occupy several streams at once occupy the first one only. All of them run as long as before and wait "
    "for the same tasks, and no stream runs more than it did."
)


def drop_further_resources(problem: Problem) -> Problem:
    """Return the problem whose tasks occupy their first stream only; itself where none occupies more."""
    if not problem.network.occupies_several:
        return problem
    return replace(problem, stages=tuple(map(_first_alone, problem.stages)))


def _first_alone(stage: Stage) -> Stage:
    tasks = ((kind, tuple(task._replace(also=()) for task in own)) for kind, own in stage.tasks)
    once = (one._replace(task=one.task._replace(also=())) for one in stage.once)
    return replace(stage, tasks=tuple(tasks), once=tuple(once))
