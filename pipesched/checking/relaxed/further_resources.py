"""Argument: where each task, such as a blocking transfer, occupies its first stream alone, no schedule takes longer.

A schedule stays one: every task keeps its time and what it waits for, and no stream runs more tasks than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipesched.problem.network.task_network import Resource
from pipesched.problem.problem import Problem


def further_resources_of(problem: Problem) -> Iterator[Resource]:
    """Yield the streams that tasks of micro-batches occupy in addition to their first one, once for each such task."""
    for stage in problem.stages:
        for _, tasks in stage.tasks:
            for task in tasks:
                yield from task.also


def without_further_resources(problem: Problem) -> Problem:
    """Return the problem in which tasks occupy their first stream only; the problem itself if no task occupies more."""
    once = (one for stage in problem.stages for one in stage.once)
    if next(further_resources_of(problem), None) is None and not any(one.task.also for one in once):
        return problem
    return replace(
        problem,
        stages=tuple(
            replace(
                stage,
                tasks=tuple((kind, tuple(task._replace(also=()) for task in tasks)) for kind, tasks in stage.tasks),
                once=tuple(one._replace(task=one.task._replace(also=())) for one in stage.once),
            )
            for stage in problem.stages
        ),
    )
