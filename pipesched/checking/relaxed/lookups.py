"""Argument: a schedule without the first tasks of forwards that need no input is no longer and holds no more."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile

from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def without_lookups(problem: Problem) -> Problem:
    """The problem itself where every forward begins with a task that waits for the stage before."""
    stages = tuple(map(_from_first_input, problem.stages))
    return problem if stages == problem.stages else replace(problem, stages=stages)


def _from_first_input(stage: Stage) -> Stage:
    own = dict(stage.tasks).get(F, ())
    left = tuple(dropwhile(lambda task: not task.needs_input, own))
    if len(left) in (0, len(own)):
        return stage
    tasks = tuple((kind, left if kind is F else of_kind) for kind, of_kind in stage.tasks)
    return replace(stage, forward=sum(task.ticks for task in left), tasks=tasks)
