"""Mode delays: the least ticks of a device's passes, each tick weighted by stage, if the device meets a threshold.

Weights are the memory, of this device or one upstream, that waits during the pass. Passes that take little time on
their micro-batch's path cost the device more: a gradient travels fastest if the backward is split, and both a gradient
and a forward are slow in an overlapped block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from pipesched.problem.quantities import MemorySteps, MemoryTicks, StageId, Ticks
from solver.bounds.analytic.modes.counts import Durations, ModeCounts, Numbers
from solver.bounds.analytic.modes.values import ModeValues


class Weights(NamedTuple):
    """Memory of one device that waits during the passes of a stage, in steps.

    The passes are its forward, gradient and weight pass. The stage may be on another device. The ticks of all passes,
    each times its weight, add up to the memory times ticks that the device needs.
    """

    forward: MemorySteps
    gradient: MemorySteps
    weight: MemorySteps


class Delays:
    """Least sum of ticks times weight over the passes of the device that `counts` describes; `weights` are by stage.

    It is for each row of `ModeCounts` and number of split backwards.
    """

    def __init__(self, counts: ModeCounts, weights: Mapping[StageId, Weights]) -> None:
        stages = {s: (one, weights[s]) for s, one in counts.ticks.items()}
        base = sum(
            (w.forward * one.forward + w.gradient * one.whole) * counts.numbers[s] for s, (one, w) in stages.items()
        )
        paired = counts.total - counts.alone
        forwards = counts.least({s: w.forward * ((one.block or 0) - one.forward) for s, (one, w) in stages.items()})
        backwards = counts.least({s: w.gradient * ((one.in_block or 0) - one.whole) for s, (one, w) in stages.items()})
        self._rows: Numbers = base + forwards[paired].astype(object) + backwards[paired]
        self._splits = counts.least({s: _less_if_split(one, w) for s, (one, w) in stages.items()})

    def by_row(self, most_split: Numbers) -> Numbers:
        """Return by row of `ModeCounts` (number of passes outside of blocks) the least sum of ticks times weight.

        `most_split` has for each row the number of backwards that may be split, which must not be negative. The sums
        are Python's integers, in an array of objects.
        """
        delays: Numbers = self._rows + self._splits[most_split]
        return delays


def _less_if_split(ticks: Durations, weights: Weights) -> MemoryTicks:
    """Return the change of a backward's ticks times weight if it is split instead of full.

    0 where that saves nothing.
    """
    if ticks.b is None or ticks.w is None:
        return 0
    split = weights.gradient * ticks.b + weights.weight * ticks.w
    return min(0, split - weights.gradient * ticks.whole)


def most_split(values: ModeValues, until: Ticks) -> Numbers:
    """Return for each row of `values` the most backwards that may be split with a value of at most `until` ticks.

    A row is a number of passes outside of blocks, as in `ModeCounts`. -1 where no number of them meets it.
    """
    counts = values.counts
    fits = (values.values <= until) & counts.possible
    columns = len(counts.split)
    last = columns - 1 - np.argmax(fits[:, ::-1], axis=1)
    most: Numbers = np.where(fits.any(axis=1), counts.split[last], -1)
    return most
