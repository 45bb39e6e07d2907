"""Argument: behind the backward that ends last of all come the reduction and the step of its stage."""

from __future__ import annotations

from pipesched.problem.problem import Problem


def behind_backwards(problem: Problem) -> int:
    """The least ticks that any stage takes for both; so long goes on after all passes of micro-batches have ended.

    Each of these has a backward behind it or is one, which ends no sooner.
    """
    least = None
    for stage, walked in enumerate(problem.microbatches_of):
        owner = problem.stages[problem.holders[stage] if problem.holders else stage]
        took = sum(task.ticks for task in (owner.reduce, owner.step) if task is not None)
        if len(walked) and (least is None or took < least):
            least = took
    return least or 0
