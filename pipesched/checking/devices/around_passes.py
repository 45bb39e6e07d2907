"""Argument: a gathering comes before all forwards; behind the backward that ends last its stage reduces and steps.

Where iterations overlap, and what counts is how long each device takes from its first task to its last, that is so on
every device by itself: what the passes of micro-batches take there is the whole less at least this.
"""

from __future__ import annotations

from pipesched.problem.passes import BW, W
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
            took = gathering + min(follows(problem, s) for s in walked)
            least = took if least is None else min(least, took)
    return least or 0


def behind_backwards(problem: Problem) -> int:
    """The least ticks that any stage takes for both; so long goes on after all passes of micro-batches have ended.

    Each of these has a backward behind it or is one, which ends no sooner.
    """
    least = None
    for stage, walked in enumerate(problem.microbatches_of):
        if len(walked) and (least is None or follows(problem, stage) < least):
            least = follows(problem, stage)
    return least or 0


def follows(problem: Problem, stage: int) -> int:
    """What is reduced and stepped behind the last task for the weights of a stage, at the least.

    A bucket waits for the tasks that have a part of its share. A W's may end in any order, a BW's last one ends it.
    """
    owner = problem.stages[problem.holders[stage] if problem.holders else stage]
    took = 0 if owner.step is None else owner.step.ticks
    if owner.reduce is None:
        return took
    each, own, waiting = owner.buckets, problem.stages[stage], list[int]()
    if own.weight is not None:
        tasks = len(own.tasks_of(W))
        for part in range(tasks):
            waiting.append(sum(at * tasks < (part + 1) * each and part * each < (at + 1) * tasks for at in range(each)))
    tasks = len(own.tasks_of(BW))
    waiting.append(sum((at + 1) * tasks > (tasks - 1) * each for at in range(each)))
    return took + min(waiting) * owner.reduce.ticks


def ahead_of_forwards(problem: Problem) -> int:
    """The least ticks that gathering takes of a stage where micro-batches begin: no pass of one starts before."""
    least = None
    for chain, walked in zip(problem.placement.chains, problem.walking, strict=True):
        owner = problem.stages[problem.holders[chain[0]] if problem.holders else chain[0]]
        took = owner.gather.task.ticks if owner.gather else 0
        if len(walked) and (least is None or took < least):
            least = took
    return least or 0
