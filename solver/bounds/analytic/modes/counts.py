"""Mode counts: the least work of a device as a function of its passes outside of overlapped blocks and split backwards.

A forward runs alone or in a block with a full backward; a backward runs in a block, alone as full backward, or split
into B and W. On every device as many backwards as forwards are outside of blocks: `alone` of them, and `split` of these
backwards are split. The other arguments about a schedule depend on these two counts alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.quantities import StageId
from pipesched.problem.view import PipelineView

# 64-bit integers, or Python's integers if sums could be larger.
Numbers = NDArray[Any]

# With more pairs of counts than this (passes outside of blocks, splits) every number of splits costs the same as the
# best number of them; with more forwards than this on a device nothing is counted. The check uses the same limits.
_MOST_CELLS = 150_000
_MOST_FORWARDS = 10_000
_LONGEST = 2**58


class Durations:
    """Times in ticks of the passes of a stage in each mode: `forward` alone, `whole` for a full backward alone.

    `block` is the least duration of a block with the stage's forward, `in_block` that of a block with its backward;
    `saved` is the most that a block with its forward takes less than the two passes in turn. These are None where
    passes do not overlap. `b` and `w` are B and W, None where backwards cannot be split.
    """

    def __init__(self, view: PipelineView, stage: StageId) -> None:
        mates = view.placement.on_device_of(stage)
        self.forward, self.whole = view.ticks[F, stage], view.ticks[BW, stage]
        self.block, self.in_block = view.least_block_of_forward(stage), view.least_block_of_backward(stage)
        blocks = ((view.ticks[BW, mate], view.blocks.get((stage, mate))) for mate in mates)
        self.saved = max((self.forward + whole - block for whole, block in blocks if block is not None), default=None)
        self.b, self.w = view.ticks.get((B, stage)), view.ticks.get((W, stage))


def modes_count(view: PipelineView) -> bool:
    """True if modes of passes change a device's time: blocks exist, or a full backward may be shorter than B and W.

    False also where a device has too many forwards to count.
    """
    stages_of_devices = view.placement.stages_of
    if max(sum(len(view.microbatches_of[s]) for s in stages) for stages in stages_of_devices) > _MOST_FORWARDS:
        return False
    return bool(view.blocks) or any(map(view.saved_by_fusing, view.stages))


class ModeCounts:
    """Least work of one device, in ticks, for each number of passes outside of blocks and of split backwards.

    `work` has it, with a row for each number outside of blocks and a column for each number split. `alone` has the
    number of forwards outside of blocks in each row (as many backwards are outside of them), `split` the number of
    split backwards in each column; `possible` is True where `split` is at most `alone`. `total` is the number of
    forwards on all `stages` of the device, `numbers` that by stage. If there would be `too_many` cells, there is one
    column, in which any number of backwards may be split at the cost of the cheapest number.
    """

    def __init__(self, view: PipelineView, stages: list[StageId]) -> None:
        self.stages = stages
        self.numbers = {s: len(view.microbatches_of[s]) for s in stages}
        self.total = sum(self.numbers.values())
        self.ticks = {s: Durations(view, s) for s in stages}
        self.alone: Numbers = np.arange(self.total + 1) if self._blocks(view) else np.array([self.total])
        self.split: Numbers = np.arange(self.total + 1) if view.splits else np.array([0])
        self.too_many = len(self.alone) * len(self.split) > _MOST_CELLS
        if self.too_many:
            self.split = np.array([self.total])
        self.possible: NDArray[np.bool_] = (self.split[None, :] <= self.alone[:, None]) | self.too_many
        self.work: Numbers = self._work()

    def _blocks(self, view: PipelineView) -> bool:
        """True if the device can run blocks.

        It can if all its stages have some, and its memory has room for two of the smallest activations.
        """
        capacity = view.room[view.placement.stage_device[self.stages[0]]]
        least = min(view.memory_in_flight[s] for s in self.stages)
        room = capacity is None or 2 * least <= capacity
        return room and all(one.block is not None for one in self.ticks.values())

    def largest(self, value: dict[StageId, int]) -> Numbers:
        """Return for n = 0, 1, ..., `total` the greatest sum of `value` over n micro-batches.

        `value` has a number by stage.
        """
        return sums(sorted(self._each(value), reverse=True))

    def least(self, value: dict[StageId, int]) -> Numbers:
        """Return for n = 0, 1, ..., `total` the least sum of `value` over n micro-batches.

        `value` has a number by stage.
        """
        return sums(sorted(self._each(value)))

    def _each(self, value: dict[StageId, int]) -> Iterable[int]:
        return chain.from_iterable(repeat(value[s], n) for s, n in self.numbers.items())

    def _work(self) -> Numbers:
        """Return the table `work`.

        It has the ticks of all forwards and full backwards, less what blocks save, plus what splitting costs.
        """
        ticks = self.ticks
        base = sum((ticks[s].forward + ticks[s].whole) * n for s, n in self.numbers.items())
        work = base - self._saved()[self.total - self.alone]
        costs = {s: one.b + one.w - one.whole for s, one in ticks.items() if one.b is not None and one.w is not None}
        more = self.least(costs) if costs else np.zeros(1, dtype=object)
        more = more.min(keepdims=True) if self.too_many else more[self.split]
        return compact(work[:, None] + more[None, :])

    def _saved(self) -> Numbers:
        """Return for n = 0, 1, ..., `total` an upper bound on the ticks that n blocks save.

        A block saves at most what any block with its forward does; and at most its forward and backward less the least
        that a block with its forward takes.
        """
        ticks = self.ticks
        by_least = self.largest({s: one.forward - (one.block or 0) for s, one in ticks.items()}).astype(object)
        by_least = by_least + self.largest({s: one.whole for s, one in ticks.items()})
        by_pair = self.largest({s: one.saved or 0 for s, one in ticks.items()}).astype(object)
        saved: Numbers = np.minimum(by_least, by_pair)
        return saved


def sums(values: list[int]) -> Numbers:
    """Return the sum of the first n values for n = 0, 1, ..., as an array that begins with 0."""
    return compact(np.array([0, *accumulate(values)], dtype=object))


def compact(values: Numbers) -> Numbers:
    """Return whole numbers as 64-bit integers if sums of a few of them fit.

    Else the array of Python's integers as it is.
    """
    return values if np.abs(values).max(initial=0) > _LONGEST else values.astype(np.int64)
