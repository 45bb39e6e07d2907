"""Relaxation that drops the first tasks of passes if they need no input: lookups of embeddings, gatherings."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.network.task_network import PassType, TaskNetwork
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage

ARGUMENT = "The network only loses the leading tasks of forwards and backwards."


def drop_lookups(problem: Problem) -> Problem:
    """Return the problem without first tasks that need no input; the problem itself if there are none."""
    if not _leading(problem):
        return problem
    return replace(problem, stages=tuple(map(_without, problem.stages)))


def network_without_lookups(problem: Problem) -> TaskNetwork:
    """Return the problem's task network without the first tasks of passes that need no input, as in `drop_lookups`."""
    return problem.network.drop(leading={of: n for of, n in _leading(problem).items() if of in problem.network.tasks})


def _leading(problem: Problem) -> dict[PassType, int]:
    """Return the number of first tasks that need no input, for each type of pass that has some."""
    passes = [(kind, s) for s, stage in enumerate(problem.stages) for kind in (F, B, BW) if kind in stage.kinds]
    return {(kind, s): entry for kind, s in passes if (entry := problem.stages[s].entry(kind))}


def _without(stage: Stage) -> Stage:
    entry = {kind: stage.entry(kind) for kind, _ in stage.tasks if kind in (F, B, BW)}
    if not any(entry.values()):
        return stage
    first = entry.get(B, 0)
    tasks = {kind: own[entry.get(kind, 0) :] for kind, own in stage.tasks}
    if W in tasks:
        tasks[W] = tuple(one if one.after is None else one._replace(after=one.after - first) for one in tasks[W])
    return stage.with_tasks(tasks)
