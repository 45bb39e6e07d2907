"""Argument: a schedule without the first tasks of passes that need no other pass takes no more time or memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage, TaskSpec


def without_lookups(problem: Problem) -> Problem:
    """Return the problem without the first tasks of F, B and BW that need no other pass.

    A pass of such tasks alone keeps them. The problem itself if there are none.
    """
    stages = tuple(map(_from_first_input, problem.stages))
    return problem if stages == problem.stages else replace(problem, stages=stages)


def _from_first_input(stage: Stage) -> Stage:
    left = dict[PassKind, tuple[TaskSpec, ...]]()
    for kind, own in stage.tasks:
        found = tuple(dropwhile(lambda task: not task.needs_input, own)) if kind in (F, B, BW) else own
        left[kind] = found or own
    dropped = {kind: len(own) - len(left[kind]) for kind, own in stage.tasks}
    if not any(dropped.values()):
        return stage
    if W in left:  # its tasks name those of B by their places
        left[W] = tuple(one._replace(after=one.after and one.after - dropped.get(B, 0)) for one in left[W])
    times = {kind: sum(task.ticks for task in own) for kind, own in left.items()}
    fused = times.get(BW, stage.fused)
    backward = fused if stage.weight is None else times.get(B, stage.backward)
    tasks = tuple(left.items())
    return replace(stage, forward=times.get(F, stage.forward), backward=backward, fused=fused, tasks=tasks)
