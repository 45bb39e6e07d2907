"""Passes stated as a single task on their stage's stream: the same problem without tasks."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def without_single_tasks(problem: Problem) -> Problem:
    """Return the problem without tasks; the problem itself if a pass has several tasks, or one on other streams."""
    if not any(stage.tasks for stage in problem.stages) or not all(map(_single, problem.stages)):
        return problem
    return replace(problem, stages=tuple(map(_plain, problem.stages)))


def _single(stage: Stage) -> bool:
    return all(
        len(own) == 1 and own[0].stream == stage.stream and not own[0].after and not own[0].also
        for _, own in stage.tasks
    )


def _plain(stage: Stage) -> Stage:
    """Return the stage without tasks, each pass lasting as long as its task."""
    ticks: dict[PassKind, int] = {kind: own[0].ticks for kind, own in stage.tasks}
    whole = ticks.get(BW, stage.fused)
    return replace(
        stage,
        forward=ticks.get(F, stage.forward),
        backward=whole if stage.weight is None else ticks.get(B, stage.backward),
        weight=None if stage.weight is None else ticks.get(W, stage.weight),
        fused=whole,
        tasks=(),
    )
