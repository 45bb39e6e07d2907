"""Whether a fused backward of several tasks can be left out, since B and W do all that it does."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec


def fused_is_never_better(problem: Problem, stage: int) -> bool:
    """Whether a fused backward of a stage is no more than the tasks of B and W in turn, or takes longer than both."""
    own = problem.stages[stage]
    takes_more = own.freed < 0 and problem.room[problem.placement.stage_device[stage]] is not None
    if own.weight is None or takes_more or problem.overlaps:
        return False
    fused, backward, weight = (own.tasks_of(kind) for kind in (BW, B, W))
    if len(fused) == len(backward) == len(weight) == 1:
        streams = {task.stream for task in (*fused, *backward, *weight)}
        return len(streams) == 1 and fused[0].ticks >= backward[0].ticks + weight[0].ticks
    return _is_woven(fused, backward, weight)


def _is_woven(fused: Sequence[TaskSpec], backward: Sequence[TaskSpec], weight: Sequence[TaskSpec]) -> bool:
    """Whether a fused backward runs the tasks of B in their order, each of W behind the one that it waits for."""
    done, left = 0, list(weight)
    for task in fused:
        if done < len(backward) and task[:3] == backward[done][:3]:
            done += 1
            continue
        ready = (w for w in left if task[:3] == w[:3] and (len(backward) if w.after is None else w.after + 1) <= done)
        found = next(ready, None)
        if found is None:
            return False
        left.remove(found)
    return done == len(backward) and not left
