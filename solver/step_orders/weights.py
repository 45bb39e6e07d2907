"""Transition of a label by a step, compiled: the whole weight passes that precede it, and the times after it.

A backward is either a gradient, after which its weight pass waits, or a full backward if that takes less than both
together. A label has the times of `solver.diagram.transitions`: the end of the last step of each micro-batch in flight,
the earliest next start of each device, and the time at which the device would have run all its work. In addition, as
weight passes are whole here, with the times of their own stages, it has the time at which each device is really free,
and the number of waiting weight passes of each stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pipesched.compiled import compiled, inlined
from pipesched.int64_arrays import int64_array
from pipesched.problem.passes import BW, B, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import StageId, TickArray
from solver.diagram.moves import fill_waiting
from solver.diagram.steps import Numbers, Steps
from solver.diagram.transitions import note_end, raise_times


class Weights(NamedTuple):
    """Weight passes of a chain; those of a device are `of[first[device]:first[device + 1]]`, the longest first.

    A weight pass is given by the index of its backward step, counted from the first backward. That is also the index
    into `ticks`, its duration, and into `full`, the duration of the full backward if that saves time, else 0.
    """

    ticks: TickArray
    full: TickArray
    of: Numbers
    first: Numbers

    def longest(self) -> TickArray:
        """Return the ticks of the longest weight pass of each device."""
        return self.ticks[self.of[self.first[:-1]]]


def weights_of(problem: Problem, chain: Sequence[StageId], steps: Steps) -> Weights:
    """Return the weight passes of a chain whose devices are all modelled by `steps`."""
    backwards, devices = chain[::-1], range(len(steps.room))
    view, split = problem.pipeline, {stage: splits(problem, stage) for stage in backwards}
    ticks = int64_array([view.ticks[W, s] if split[s] else 0 for s in backwards])
    full = int64_array([view.ticks[BW, s] if split[s] and view.saved_by_fusing(s) else 0 for s in backwards])
    device = steps.device[len(chain) :]
    order = np.lexsort((-ticks, device)).astype(np.int64)
    counts = [int((device == one).sum()) for one in devices]
    return Weights(ticks, full, order, np.cumsum([0, *counts], dtype=np.int64))


def splits(problem: Problem, stage: int) -> bool:
    """True if a backward of the stage may be split and its gradient is then available sooner."""
    view = problem.pipeline
    return view.splits and view.ticks[B, stage] < view.ticks[BW, stage]


@inlined
def advance_whole(
    label: Numbers,
    ran: Numbers,
    step: int,
    pending: int,
    delay: int,
    full: int,
    steps: Steps,
    weights: Weights,
) -> bool:
    """Change a label in place by a step, after weight passes of its device: those that end before it can start, then
    more.

    The number of further ones is that which memory needs, so that at most `pending` wait (negative: any), or `delay` (0
    or 1) if that is more. In idle time the longest go first, of the further ones the shortest. With `full` the step is
    a full backward, whose own weight pass need not wait. `ran` has by step the micro-batches that have done it before.
    Returns False, with the label spoilt, if `delay` is above 0 and fewer wait, or memory needs as many anyway.
    """
    devices, most = len(steps.room), steps.slots
    device, half = steps.device[step], len(steps.ticks) // 2
    waits, since, until = most + 3 * devices, weights.first[device], weights.first[device + 1]
    ready, now = label[most + device], label[most + 2 * devices + device]
    if step > 0:
        ready = max(ready, label[ran[step] - ran[-1]] + steps.lag[step])
    waiting = 0
    for at in range(since, until):
        weight = weights.of[at]
        ticks = weights.ticks[weight]
        while label[waits + weight] > 0 and now + ticks <= ready:
            label[waits + weight] -= 1
            now += ticks
        waiting += label[waits + weight]
    needed = max(0, waiting - pending) if pending >= 0 else 0
    if delay > 0 and (needed >= delay or waiting < delay):
        return False
    needed, at = max(needed, delay), until - 1
    while needed > 0:
        weight = weights.of[at]
        if label[waits + weight] == 0:
            at -= 1
            continue
        label[waits + weight] -= 1
        needed -= 1
        now += weights.ticks[weight]
    start = max(ready, now)
    for other in range(most, most + devices):
        label[other] = max(label[other], start)
    end = start + (weights.full[step - half] if full else steps.ticks[step])
    label[most + device] = label[most + 2 * devices + device] = end
    note_end(label, step, ran, end, steps)
    if step >= half and not full and weights.ticks[step - half] > 0:
        label[waits + step - half] += 1
    for at in range(since, until):
        end += label[waits + weights.of[at]] * weights.ticks[weights.of[at]]
    label[most + devices + device] = end
    return True


@compiled
def settle(label: Numbers, ran: Numbers, steps: Steps) -> None:
    """Raise, in place, the times of a label to those before which none of the remaining steps can start anyway.

    `ran` has by step the number of micro-batches that have done it.
    """
    waiting = np.empty((len(ran), 3), np.int64)
    raise_times(label, waiting, fill_waiting(ran, steps, waiting), steps)
