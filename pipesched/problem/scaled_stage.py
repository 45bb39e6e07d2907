"""A stage whose passes take other times and memory, all that it has at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from pipesched.problem.stage import PassMemory, Stage, TaskSpec


def scaled_stage(stage: Stage, time: Fraction | int, memory: Fraction | int) -> Stage:
    """A stage whose passes take so many times the ticks and the memory, which must be integers then.

    But for transfers, which a link may lengthen, and for what is static.
    """
    return mapped_stage(stage, lambda ticks: int(ticks * time), lambda amount: int(amount * memory))


def mapped_stage(stage: Stage, ticks: Callable[[int], int], amount: Callable[[int], int]) -> Stage:
    """A stage with other ticks and memory for each that it has, in this order; transfers and what is static stay."""
    copies, gather = stage.offload, stage.gather

    def task(own: TaskSpec) -> TaskSpec:
        return own._replace(ticks=ticks(own.ticks))

    return replace(
        stage,
        forward=ticks(stage.forward),
        backward=ticks(stage.backward),
        weight=None if stage.weight is None else ticks(stage.weight),
        fused=ticks(stage.fused),
        overlapped=None if stage.overlapped is None else ticks(stage.overlapped),
        activation=amount(stage.activation),
        freed=amount(stage.freed),
        lent=amount(stage.lent),
        collected=amount(stage.collected),
        workspace=PassMemory(*map(amount, stage.workspace)),
        until_end=PassMemory(*map(amount, stage.until_end)),
        tasks=tuple((kind, tuple(map(task, tasks))) for kind, tasks in stage.tasks),
        offload=copies
        and copies._replace(
            out_ticks=ticks(copies.out_ticks), in_ticks=ticks(copies.in_ticks), amount=amount(copies.amount)
        ),
        recompute=tuple(way._replace(ticks=ticks(way.ticks), keeps=amount(way.keeps)) for way in stage.recompute),
        once=tuple(one._replace(task=task(one.task)) for one in stage.once),
        gather=gather and gather._replace(task=task(gather.task), memory=amount(gather.memory)),
    )
