"""The problem without what stages run once an iteration for their parameters: the passes of micro-batches alone."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Objective, Problem


def without_parameters(problem: Problem) -> Problem:
    """The same to be minimised in makespan; the problem itself where its objective is not the iteration.

    Leaving these passes out of a schedule gives one of this problem that ends no later.
    """
    if problem.objective is not Objective.ITERATION:
        return problem
    stages = tuple(replace(stage, reduce=None, step=None) for stage in problem.stages)
    return replace(problem, stages=stages, holders=(), objective=Objective.MAKESPAN)
