"""Argument: a gathering comes before all forwards; behind the backward that ends last its stage reduces and steps.

Where iterations overlap, and what counts is how long each device takes from its first task to its last, that is so on
every device by itself: what the passes of micro-batches take there is the whole less at least this.
"""

from __future__ import annotations

from pipesched.problem.problem import Objective, Problem


def around_passes(problem: Problem) -> int:
    """The least ticks of both together; 0 where nothing is run for parameters."""
    if problem.objective is not Objective.SPAN:
        return ahead_of_forwards(problem) + behind_backwards(problem)
    least = None
    for device in range(problem.devices):
        walked = [s for s in problem.placement.stages_of[device] if len(problem.microbatches_of[s])]
        owners = [problem.stages[problem.holders[s] if problem.holders else s] for s in walked]
        if owners:
            gathering = min(one.gather.task.ticks if one.gather else 0 for one in owners)
            took = gathering + min(sum(t.ticks for t in (one.reduce, one.step) if t is not None) for one in owners)
            least = took if least is None else min(least, took)
    return least or 0


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
