"""Memory times time that a device's activations need, and that its memory has, depending on the modes of all passes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesched.problem.quantities import MemorySteps, MemoryTicks, Ticks
from solver.bounds.analytic.modes.counts import Numbers
from solver.bounds.analytic.modes.delays import Delays, Weights
from solver.bounds.analytic.modes.values import ModeValues


class MemoryTime(NamedTuple):
    """Memory times ticks of one device: the least that its activations need (`needed`), the most that it has (`given`).

    `capacity` is the memory that can be in use at once. `alone` and `split` are the device's numbers of forwards
    outside of blocks and of split backwards, chosen so that `given` - `needed` is greatest.
    """

    needed: MemoryTicks
    given: MemoryTicks
    capacity: MemorySteps
    alone: int
    split: int


class DeviceMemory:
    """Memory of the device at index `at` of `devices`, and its activations' least time in it if all meet a threshold.

    Activations are in use during their passes here and those on the path to the last stage and back. `start` is the
    earliest start of the device's first pass in ticks; the memory freed by a backward must not be negative.
    """

    def __init__(self, devices: list[ModeValues], at: int, start: Ticks) -> None:
        self.own, self.start = devices[at], start
        self.view, self.counts = self.own.view, self.own.counts
        view = self.view
        chains = [view.placement.chains[view.placement.chain_index[c[0]]] for c in self.own.chains]
        # By stage: the memory of this device's activations that waits for passes of the stage.
        waiting = {stage: 0 for one in devices for stage in one.counts.stages}
        self.lags = 0
        for chain in chains:
            memory_in_use = 0
            for stage, following in zip(chain, [*chain[1:], None], strict=True):
                waiting[stage] = memory_in_use
                memory_in_use += view.memory_in_flight[stage] * (stage in self.counts.numbers)
                if following is not None:
                    there_and_back = view.lag(stage, following) + view.lag(following, stage)
                    self.lags += there_and_back * memory_in_use * len(view.microbatches_of[stage])
        self.others = [
            (other, Delays(one.counts, {s: Weights(waiting[s], waiting[s], 0) for s in one.counts.stages}))
            for other, one in enumerate(devices)
            if other != at
        ]
        activation = view.memory_in_flight
        both = {s: waiting[s] + activation[s] for s in self.counts.stages}
        here = {s: Weights(both[s], both[s], view.memory_until_weight[s]) for s in self.counts.stages}
        self.here = Delays(self.counts, here)
        # The most memory that n activations take, for n = 0, 1, ..., and its cumulative sum.
        self.most = self.counts.largest({s: activation[s] for s in self.counts.stages})
        self._summed = np.cumsum(self.most.astype(object))

    def memory_time(self, until: Ticks, splits: list[Numbers], at: int) -> MemoryTime:
        """Return the memory times ticks that this device's activations need and that it has.

        All devices are assumed to meet `until` ticks. The device's own counts of passes are those with the greatest
        `given` - `needed`. `splits` has the result of `most_split`, for `until`, of each of the class's `devices` in
        order; `at` is the index of this device.
        """
        elsewhere = self.lags + sum(
            int(delays.by_row(np.maximum(splits[other], 0))[splits[other] >= 0].min()) for other, delays in self.others
        )
        here = self.here.by_row(np.maximum(splits[at], 0))
        rows = np.flatnonzero(splits[at] >= 0)
        every = (self._in(until, int(here[row]) + elsewhere, int(row), int(splits[at][row])) for row in rows)
        return max(every, key=lambda one: one.given - one.needed)

    def _in(self, until: Ticks, needed: MemoryTicks, row: int, split: int) -> MemoryTime:
        alone = int(self.counts.alone[row])
        capacity = int(self.most[min(self.counts.total, alone + 1)])
        if self.own.capacity is not None:
            capacity = min(capacity, self.own.capacity)
        ticks, unused = self._ramps(capacity, split)
        time = until - self.start
        given = min(capacity * time, capacity * max(time, ticks) - unused)
        return MemoryTime(needed, given, capacity, alone, split)

    def _ramps(self, capacity: MemorySteps, split: int) -> tuple[Ticks, MemoryTicks]:
        """Return the least ticks to fill memory of `capacity` by forwards and empty it, and memory unused meanwhile.

        The latter is memory times ticks. `split` is the number of backwards that may be split: for the last of these W,
        or B, empties the memory.
        """
        passes = self.counts.ticks
        fill = min(min(one.forward, one.forward if one.block is None else one.block) for one in passes.values())
        whole = min(min(one.whole, one.whole if one.in_block is None else one.in_block) for one in passes.values())
        last = [one.w if self.view.memory_until_weight[s] > 0 else one.b for s, one in passes.items()]
        late = min([whole, *(one for one in last if one is not None)])
        steps = int(np.searchsorted(self.most, capacity)) - 1
        if steps < 1:
            return 0, 0
        soon = min(steps, split)
        room, first = (many * capacity - int(self._summed[many]) for many in (steps, soon))
        return steps * (fill + whole) - soon * (whole - late), room * (fill + whole) - first * (whole - late)
