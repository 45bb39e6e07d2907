"""Argument: a gathering comes before all forwards; behind the backward that ends last its stage reduces and steps."""

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


def ahead_of_forwards(problem: Problem) -> int:
    """The least ticks that gathering takes of a stage where micro-batches begin: no pass of one starts before."""
    least = None
    for chain, walked in zip(problem.placement.chains, problem.walking, strict=True):
        owner = problem.stages[problem.holders[chain[0]] if problem.holders else chain[0]]
        took = owner.gather.task.ticks if owner.gather else 0
        if len(walked) and (least is None or took < least):
            least = took
    return least or 0
