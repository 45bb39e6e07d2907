"""Least times of one micro-batch on its path along the stages and back, valid for every order and all modes."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import NamedTuple

from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, Ticks
from pipesched.problem.stage import Stage


class LeastTimes(NamedTuple):
    """The least times of a stage, in ticks; a forward or full backward may run inside a block, which may be shorter.

    `forward` is the least duration of the forward, `gradient` that of the pass that computes the gradient, and
    `backward` the time from the start of that pass to the end of the whole backward. `begins` and `gradient_begins` are
    the least times from the start of the micro-batch's first forward to the start of the forward and of the gradient
    pass on this stage.
    """

    forward: Ticks
    gradient: Ticks
    backward: Ticks
    begins: Ticks
    gradient_begins: Ticks

    @property
    def returned(self) -> Ticks:
        """Return the least ticks from the start of the micro-batch's first forward to the end of this gradient pass."""
        return self.gradient_begins + self.gradient


def least_times(problem: Problem) -> list[LeastTimes]:
    """Return the least times of every stage, by its number.

    They are those of its passes, and from the start of the micro-batch to them along its chain.
    """
    where = problem.placement
    mates = [where.stages_of[device] for device in where.stage_device]
    durations = [least_durations(problem, *one) for one in enumerate(mates)]
    found: dict[int, LeastTimes] = {}
    for chain in problem.placement.chains:
        begins = [0]
        for one, other in pairwise(chain):
            begins.append(begins[-1] + durations[one][0] + problem.lag(one, other))
        turns = [begins[-1] + durations[chain[-1]][0]]
        for one, other in zip(chain[::-1], chain[-2::-1], strict=False):
            turns.append(turns[-1] + durations[one][1] + problem.lag(one, other))
        for stage, start, turn in zip(chain, begins, reversed(turns), strict=True):
            found[stage] = LeastTimes(*durations[stage], start, turn)
    return [found[stage] for stage in range(len(problem.stages))]


def least_durations(problem: Problem, number: StageId, mates: Collection[StageId]) -> tuple[Ticks, Ticks, Ticks]:
    """Return the least ticks of the forward, the gradient pass, and the whole backward of stage `number`.

    They may run in blocks with passes of the stages `mates`.
    """
    stage = problem.stages[number]
    others = [problem.stages[n] for n in mates]
    full = min([stage.fused, *(block for one in others if (block := one.block_with(stage)) is not None)])
    forward = min([stage.forward, *(block for one in others if (block := stage.block_with(one)) is not None)])
    if stage.weight is None:
        return forward, full, full
    return forward, min(stage.backward, full), min(stage.backward + stage.weight, full)


def least_backward(stage: Stage) -> Ticks:
    """Return the least compute ticks of a micro-batch's backward outside of blocks."""
    return stage.fused if stage.weight is None else min(stage.fused, stage.backward + stage.weight)
