"""Relaxation: forwards without the tasks that need nothing of the stage before, such as lookups of embeddings."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage

ARGUMENT = (
    "Left out of a schedule, these tasks leave one of the poorer problem that ends no later and holds no more: what a "
    "forward takes is taken when the first task that is left starts. Devices may begin later, so that no span is "
    "longer."
)


def drop_lookups(problem: Problem) -> Problem:
    """The problem itself where there are none."""
    if all(stage.entry == 0 for stage in problem.stages):
        return problem
    return replace(problem, stages=tuple(map(_without, problem.stages)))


def _without(stage: Stage) -> Stage:
    own = stage.tasks_of(F)[stage.entry :]
    tasks = tuple((kind, own if kind is F else held) for kind, held in stage.tasks)
    return replace(stage, forward=sum(task.ticks for task in own), tasks=tasks)
