"""The problem without arcs between the passes of a stage: what its bounds are computed of."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.problem import Problem


def without_stage_arcs(problem: Problem) -> Problem:
    """The problem itself where there are none.

    Every schedule is one of this problem too: it has fewer arcs, and what a forward takes for others its own backward
    gives back, which never is later than in the problem. So no schedule of the problem is below a bound of this one.
    """
    if not problem.stage_arcs:
        return problem
    stages = tuple(
        replace(s, activation=s.activation + s.lent, freed=s.freed + s.lent, lent=0, collected=0)
        for s in problem.stages
    )
    return replace(problem, stages=stages, stage_arcs=(), sequence_chunks=1, modules=())
