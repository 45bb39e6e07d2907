"""Stages with all times and memory changed by a factor or a function, and lists of these numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial

from pipesched.problem.blocks import Blocks
from pipesched.problem.kv_cache import KvCache
from pipesched.problem.quantities import MemorySteps, Ticks
from pipesched.problem.stage import PassMemory, Stage, TaskSpec


def scaled_stage(stage: Stage, time: Fraction | int, memory: Fraction | int) -> Stage:
    """Return the stage with its ticks multiplied by `time` and its memory by `memory`; all products must be integers.

    Transfers, which a link may lengthen, and static memory stay.
    """
    return mapped_stage(stage, lambda ticks: int(ticks * time), lambda amount: int(amount * memory))


def mapped_stage(stage: Stage, ticks: Callable[[Ticks], Ticks], amount: Callable[[MemorySteps], MemorySteps]) -> Stage:
    """Return the stage with `ticks` and `amount` applied to each of its times and amounts of memory, in a fixed order.

    Transfers and static memory stay.
    """
    copies, gather = stage.offload, stage.gather

    def task(own: TaskSpec) -> TaskSpec:
        return own._replace(ticks=ticks(own.ticks))

    return replace(
        stage,
        forward=ticks(stage.forward),
        backward=ticks(stage.backward),
        weight=None if stage.weight is None else ticks(stage.weight),
        fused=ticks(stage.fused),
        blocks=Blocks(*(None if number is None else ticks(number) for number in stage.blocks)),
        activation=amount(stage.activation),
        freed=amount(stage.freed),
        kv_cache=KvCache(*map(amount, stage.kv_cache)),
        workspace=PassMemory(*map(amount, stage.workspace)),
        until_end=PassMemory(*map(amount, stage.until_end)),
        tasks=tuple((kind, tuple(map(task, tasks))) for kind, tasks in stage.tasks),
        offload=copies
        and copies._replace(
            out_ticks=ticks(copies.out_ticks), in_ticks=ticks(copies.in_ticks), amount=amount(copies.amount)
        ),
        recompute=tuple(mode._replace(ticks=ticks(mode.ticks), keeps=amount(mode.keeps)) for mode in stage.recompute),
        once=tuple(one._replace(task=task(one.task)) for one in stage.once),
        gather=gather and gather._replace(task=task(gather.task), memory=amount(gather.memory)),
    )


def numbers_of(stage: Stage) -> tuple[list[Ticks], list[MemorySteps]]:
    """Return two lists: a stage's times in ticks without `transfer`, and its memory in steps without `static`.

    Each list is in a fixed order.
    """
    ticks, amounts = list[int](), list[int]()

    def noted(found: list[int], number: int) -> int:
        found.append(number)
        return number

    mapped_stage(stage, partial(noted, ticks), partial(noted, amounts))
    return ticks, amounts
