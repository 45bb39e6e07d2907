"""Relaxation: forwards without the tasks that need nothing of the stage before, such as lookups of embeddings."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.network.task_network import TaskNetwork
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage

ARGUMENT = "The network only loses the leading tasks of forwards."


def drop_lookups(problem: Problem) -> Problem:
    """The problem itself where there are none."""
    if all(stage.entry == 0 for stage in problem.stages):
        return problem
    return replace(problem, stages=tuple(map(_without, problem.stages)))


def network_without_lookups(problem: Problem) -> TaskNetwork:
    """The network of `drop_lookups`."""
    return problem.network.drop(leading={(F, s): stage.entry for s, stage in enumerate(problem.stages) if stage.entry})


def _without(stage: Stage) -> Stage:
    own = stage.tasks_of(F)[stage.entry :]
    tasks = tuple((kind, own if kind is F else held) for kind, held in stage.tasks)
    return replace(stage, forward=sum(task.ticks for task in own), tasks=tasks)
