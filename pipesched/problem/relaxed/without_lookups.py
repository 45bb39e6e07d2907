"""The problem without tasks that need nothing of the stage before: what its bounds are computed of."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def without_lookups(problem: Problem) -> Problem:
    """The problem itself where there are none.

    Leaving these tasks out of a schedule gives one of this problem that ends no later and holds no more: what a forward
    takes is taken when the first task that is left starts. Devices may begin later, so that no span is longer; what a
    span may be a fraction of is that of this problem, for its bounds. So no schedule of the problem is below a bound
    of this one.
    """
    if all(stage.entry == 0 for stage in problem.stages):
        return problem
    return replace(problem, stages=tuple(map(_without, problem.stages)))


def _without(stage: Stage) -> Stage:
    own = stage.tasks_of(F)[stage.entry :]
    tasks = tuple((kind, own if kind is F else held) for kind, held in stage.tasks)
    return replace(stage, forward=sum(task.ticks for task in own), tasks=tasks)
