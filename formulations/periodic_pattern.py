"""A pattern: what every device repeats for ever, as an order on a ring, with its exact shortest period."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from formulations.blocks import BlockGraph


class Copy(NamedTuple):
    """A block of one of the micro-batches that a pattern repeats."""

    block: int
    copy: int


class _Arc(NamedTuple):
    """`after` starts `ticks` after the start of `before`, less `turns` repetitions, or later."""

    before: int
    after: int
    ticks: int
    turns: int


@dataclass(frozen=True)
class Pattern:
    """`copies` consecutive micro-batches of a graph, repeated.

    `rings[d]` is the order of device d's blocks within one repetition. A block that the ring lists is that of
    micro-batch `copy` in the repetition `turns[block, copy][d]` places before: what is listed behind the first block of
    device d runs in repetition n for micro-batch (n - turns) * copies + copy. `fused` are the backwards run in one go.
    """

    graph: BlockGraph
    copies: int
    rings: tuple[tuple[Copy, ...], ...]
    turns: Mapping[Copy, Mapping[int, int]]
    fused: frozenset[Copy] = frozenset()

    @property
    def period(self) -> Fraction:
        """The shortest time per micro-batch that this order allows, in ticks."""
        return self.length / (self.copies * self.graph.microbatches)

    @property
    def length(self) -> Fraction:
        """The shortest time of one repetition, in ticks."""
        return self._times[0]

    @property
    def starts(self) -> Mapping[Copy, Fraction]:
        """The earliest start of each copy in the repetition of micro-batch 0, up to a common shift."""
        return self._times[1]

    @cached_property
    def _fusion(self) -> dict[int, tuple[int, int]]:
        """(weight, ticks of both in one) of each backward block that may be fused."""
        return {f.backward: (f.weight, f.ticks) for f in self.graph.fusions}

    @cached_property
    def _removed(self) -> frozenset[Copy]:
        """Weight blocks that run inside their fused backward."""
        return frozenset(Copy(self._fusion[b][0], i) for b, i in self.fused)

    def ticks(self, x: Copy) -> int:
        """How long a block occupies its devices."""
        if x in self._removed:
            return 0
        return self._fusion[x.block][1] if x in self.fused else self.graph.blocks[x.block].ticks

    def runs(self, x: Copy) -> bool:
        """Whether the block is run by itself: weight passes inside a fused backward are not."""
        return x not in self._removed

    def peak(self, device: int) -> int:
        """The most memory the device ever holds."""
        held = {x: self.graph.blocks[x.block].memory[device] for x in self.rings[device]}
        # Before the first block, `turns` copies of each block have yet to run and those before them have.
        level = -sum(change.total * self.turns[x][device] for x, change in held.items())
        peak = level
        for x in self.rings[device]:
            # A backward in one go takes nothing when it starts; its weight block stands right behind it.
            if held[x].at_start > 0 and x not in self.fused:
                peak = max(peak, level + held[x].at_start)
            level += held[x].total
        return peak

    def fits(self) -> bool:
        """Whether every device's memory holds what the pattern takes."""
        return all(c is None or self.peak(d) <= c for d, c in enumerate(self.graph.capacity))

    def _arcs(self, index: Mapping[Copy, int]) -> Iterator[_Arc]:
        for before, after, lag in self.graph.waits:
            for i in range(self.copies):
                one, other = Copy(before, i), Copy(after, i)
                yield _Arc(index[one], index[other], self.ticks(one) + lag, 0)
        for device, ring in enumerate(self.rings):
            for one, other in pairwise(ring):
                turns = self.turns[one][device] - self.turns[other][device]
                yield _Arc(index[one], index[other], self.ticks(one), turns)
            if ring:
                turns = self.turns[ring[-1]][device] - self.turns[ring[0]][device] + 1
                yield _Arc(index[ring[-1]], index[ring[0]], self.ticks(ring[-1]), turns)

    @cached_property
    def _times(self) -> tuple[Fraction, Mapping[Copy, Fraction]]:
        """Newton's way up to the maximum cycle ratio: the least length that no circle of waits exceeds.

        ValueError for an order that waits for itself at any length.
        """
        copies = list(self.turns)
        arcs = list(self._arcs({x: n for n, x in enumerate(copies)}))
        length = Fraction(max((sum(map(self.ticks, ring)) for ring in self.rings), default=0))
        while True:
            found = _longest_ways(len(copies), arcs, length)
            if isinstance(found, list):
                return length, {x: Fraction(way, length.denominator) for x, way in zip(copies, found, strict=True)}
            if found[1] <= 0:
                raise ValueError("the pattern waits for itself")
            length = Fraction(*found)


def in_turn(graph: BlockGraph) -> Pattern:
    """Everything of one micro-batch (of each chain) before anything of the next: the pattern that holds least."""
    follows: list[list[int]] = [[] for _ in graph.blocks]
    missing = [0] * len(graph.blocks)
    for wait in graph.waits:
        follows[wait.before].append(wait.after)
        missing[wait.after] += 1
    ready = [b for b, count in enumerate(missing) if count == 0][::-1]
    sequence: list[int] = []
    while ready:
        sequence.append(ready.pop())
        for after in follows[sequence[-1]]:
            missing[after] -= 1
            if missing[after] == 0:
                ready.append(after)
    rings = tuple(
        tuple(Copy(b, 0) for b in sequence if device in graph.blocks[b].devices)
        for device in range(len(graph.capacity))
    )
    turns = {Copy(b, 0): dict.fromkeys(block.devices, 0) for b, block in enumerate(graph.blocks)}
    return Pattern(graph, 1, rings, turns)


def _longest_ways(nodes: int, arcs: list[_Arc], length: Fraction) -> list[int] | tuple[int, int]:
    """The earliest starts, in parts of a tick, or (ticks, turns) of a circle that is too long for the length."""
    parts, whole = length.denominator, length.numerator
    weighted = [(a.before, a.after, a.ticks * parts - a.turns * whole, n) for n, a in enumerate(arcs)]
    way = [0] * nodes
    came_by: list[int | None] = [None] * nodes
    while True:
        moved = False
        for before, after, weight, number in weighted:
            if way[before] + weight > way[after]:
                way[after] = way[before] + weight
                came_by[after] = number
                moved = True
        if not moved:
            return way
        circle = _circle(arcs, came_by)
        if circle:
            return sum(a.ticks for a in circle), sum(a.turns for a in circle)


def _circle(arcs: list[_Arc], came_by: list[int | None]) -> list[_Arc]:
    """A circle among the arcs that nodes were reached by; empty where there is none."""
    seen = [-1] * len(came_by)
    for root in range(len(came_by)):
        path: list[_Arc] = []
        node = root
        while seen[node] < 0:
            seen[node] = root
            number = came_by[node]
            if number is None:
                break
            path.append(arcs[number])
            node = arcs[number].before
        else:
            if seen[node] == root:
                return path[next(n for n, arc in enumerate(path) if arc.after == node) :]
    return []
