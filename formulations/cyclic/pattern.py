"""A periodic pattern: the cyclic order of blocks on every device, with its exact minimum period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from formulations.cyclic.block_graph import BlockGraph, BlockId, Fusion
from formulations.cyclic.cycle_ratio import Arc, least_length
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks


class Copy(NamedTuple):
    """Block number `block` of the graph, for micro-batch number `copy` (from 0) of those that a pattern repeats."""

    block: BlockId
    copy: int


@dataclass(frozen=True)
class Pattern:
    """A schedule that repeats `copies` consecutive micro-batches of a graph, as a cyclic order on every device.

    `cyclic_orders[d]` is the order of device d's blocks within one period. `repetitions[block, copy][d]` is a block's
    repetition count: the periods of device d begin with its first block, and in period n it runs the block for
    micro-batch (n - count) * copies + copy. `fused` are the backward blocks that run as full backwards; the W of each
    is next in the order, and takes no time. `overlapped` are pairs of a forward and a fused backward that run together;
    they are adjacent in the cyclic order, the forward first.
    """

    graph: BlockGraph
    copies: int
    cyclic_orders: tuple[tuple[Copy, ...], ...]
    repetitions: Mapping[Copy, Mapping[DeviceId, int]]
    fused: frozenset[Copy] = frozenset()
    overlapped: frozenset[tuple[Copy, Copy]] = frozenset()

    @property
    def period(self) -> Fraction:
        """Minimum time per micro-batch of this order, in ticks; ValueError if no length of a period satisfies it."""
        return self.length / (self.copies * self.graph.microbatches)

    @property
    def length(self) -> Fraction:
        """Minimum length of one period of all copies, in ticks; ValueError if no length satisfies the order."""
        return self._times[0]

    @property
    def starts(self) -> Mapping[Copy, Fraction]:
        """Earliest start of each copy, in ticks, when the pattern runs for the first time.

        All may be shifted together. Raises ValueError for an order that no length of a period satisfies.
        """
        return self._times[1]

    def from_anchors(self, anchors: Sequence[Copy | None]) -> Pattern:
        """Return the same pattern rotated so that `anchors[d]` is first on device d, with a repetition count of zero.

        None for a device without blocks. If the anchor is the backward of an overlapped pair, the pair's forward is
        first.
        """
        cyclic_orders: list[tuple[Copy, ...]] = []
        repetitions = {x: dict(counts) for x, counts in self.repetitions.items()}
        for device, (cyclic_order, anchor) in enumerate(zip(self.cyclic_orders, anchors, strict=True)):
            at = 0 if anchor is None else cyclic_order.index(anchor)
            if at and (cyclic_order[at - 1], anchor) in self.overlapped:
                at -= 1
            cyclic_orders.append((*cyclic_order[at:], *cyclic_order[:at]))
            zero = 0 if anchor is None else self.repetitions[anchor][device]
            for n, x in enumerate(cyclic_order):
                repetitions[x][device] += (n < at) - zero
        return replace(self, cyclic_orders=tuple(cyclic_orders), repetitions=repetitions)

    @cached_property
    def _fusion(self) -> dict[BlockId, Fusion]:
        """The fusion that each backward block may have, by the block's index."""
        return {fusion.backward: fusion for fusion in self.graph.fusions}

    @cached_property
    def _removed(self) -> frozenset[Copy]:
        """The weight blocks that run inside their fused backward."""
        return frozenset(Copy(self._fusion[b].weight, i) for b, i in self.fused)

    @cached_property
    def _together(self) -> dict[Copy, Ticks]:
        """For each copy that runs in an overlapped pair, the ticks of the pair."""
        ticks = {(one.forward, one.backward): one.ticks for one in self.graph.overlaps}
        return {x: ticks[pair[0].block, pair[1].block] for pair in self.overlapped for x in pair}

    def ticks(self, x: Copy) -> Ticks:
        """Return the duration of a block in ticks; 0 for a weight block inside its fused backward."""
        if x in self._together:
            return self._together[x]
        if x in self._removed:
            return 0
        return self._fusion[x.block].ticks if x in self.fused else self.graph.blocks[x.block].ticks

    def runs(self, x: Copy) -> bool:
        """True if the block runs by itself; False for a weight block inside its fused backward."""
        return x not in self._removed

    def peak(self, device: DeviceId) -> MemorySteps:
        """Return the largest memory level of a device in a period, in the graph's steps of memory."""
        change_of = {x: self.graph.blocks[x.block].memory[device] for x in self.cyclic_orders[device]}
        # Before the first block, `repetitions` copies of each block have yet to run and those before them have.
        level = -sum(change.total * self.repetitions[x][device] for x, change in change_of.items())
        peak = level
        for x in self.cyclic_orders[device]:
            # Inside a fused backward the weight block, which is next in the order, takes no memory.
            taken = self._fusion[x.block].taken if x in self.fused else change_of[x].at_start
            if taken > 0 and self.runs(x):
                peak = max(peak, level + taken)
            level += change_of[x].total
        return peak

    def fits(self) -> bool:
        """True if the pattern's memory fits the capacity of every device."""
        return all(c is None or self.peak(d) <= c for d, c in enumerate(self.graph.capacity))

    def _arcs(self, index: Mapping[Copy, int]) -> Iterator[Arc]:
        for before, after, lag in self.graph.waits:
            for i in range(self.copies):
                one, other = Copy(before, i), Copy(after, i)
                yield Arc(index[one], index[other], self.ticks(one) + lag, 0)
        for device, cyclic_order in enumerate(self.cyclic_orders):
            for one, other in pairwise(cyclic_order):
                repetitions = self.repetitions[one][device] - self.repetitions[other][device]
                if (one, other) in self.overlapped:
                    yield Arc(index[one], index[other], 0, repetitions)
                    yield Arc(index[other], index[one], 0, -repetitions)
                else:
                    yield Arc(index[one], index[other], self.ticks(one), repetitions)
            if cyclic_order:
                repetitions = self.repetitions[cyclic_order[-1]][device] - self.repetitions[cyclic_order[0]][device] + 1
                yield Arc(index[cyclic_order[-1]], index[cyclic_order[0]], self.ticks(cyclic_order[-1]), repetitions)

    def _load(self, cyclic_order: tuple[Copy, ...]) -> Ticks:
        """Return the ticks of work in one period of a device whose blocks run in `cyclic_order`.

        Two overlapped ones count once.
        """
        second = {backward for _, backward in self.overlapped}
        return sum(self.ticks(x) for x in cyclic_order if x not in second)

    @cached_property
    def _times(self) -> tuple[Fraction, Mapping[Copy, Fraction]]:
        """(length, starts): the least length of a period and the start of each copy, in ticks.

        Raises ValueError for an order that no length satisfies.
        """
        copies = list(self.repetitions)
        arcs = list(self._arcs({x: n for n, x in enumerate(copies)}))
        load = max(map(self._load, self.cyclic_orders), default=0)
        length, starts = least_length(len(copies), arcs, load)
        return length, dict(zip(copies, starts, strict=True))
