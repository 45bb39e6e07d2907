"""Passes that a file states as one task each, on the stream of their stage: the same problem without tasks."""

from __future__ import annotations

from dataclasses import replace

from pipesched.problem.passes import BW, B, F, PassKind, W
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Stage


def without_single_tasks(problem: Problem) -> Problem:
    """The problem itself where a pass of some stage has several tasks, or one on another stream."""
    if not any(stage.tasks for stage in problem.stages) or not all(map(_single, problem.stages)):
        return problem
    return replace(problem, stages=tuple(map(_plain, problem.stages)))


def _single(stage: Stage) -> bool:
    return all(len(own) == 1 and own[0].stream == stage.stream and not own[0].after for _, own in stage.tasks)


def _plain(stage: Stage) -> Stage:
    """Its passes last as long as their tasks; those without tasks as the stage says."""
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
