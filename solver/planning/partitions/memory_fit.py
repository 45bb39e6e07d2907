"""What must be recomputed for an order's micro-batches to fit the memory, device by device, with little time lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple

from pipesched.layers.layer import LayerType, RecomputeWay
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.pieces import ends_of
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule


class Need(NamedTuple):
    """What one device recomputes: the time it takes for a micro-batch, and on which of its stages what.

    `excess` is the memory that is lacking even so, in units of the resolution.
    """

    time: float
    excess: int
    recompute: dict[int, tuple[Recomputed, ...]]


class _Moment(NamedTuple):
    """What a device holds at one moment: by stage the micro-batches that wait for their B, and those for their W."""

    kept: Counter[int]
    split: Counter[int]

    def of_whole(self, shares: Sequence[Fraction]) -> _Moment:
        """In whole micro-batches, of which the pieces have these shares, rounded up."""
        if len(shares) == 1:
            return self
        found = _Moment(Counter(), Counter())
        for mine, whole in zip(self, found, strict=True):
            for stage in {each // len(shares) for each in mine}:
                held = (mine[stage * len(shares) + j] * share for j, share in enumerate(shares))
                whole[stage] = ceil(sum(held))
        return found


class _Saving(NamedTuple):
    """One way to recompute layers of a type on a stage; `memory` at each moment, and `time`, of one of them."""

    memory: tuple[int, ...]
    time: float
    stage: int
    layer: LayerType
    way: RecomputeWay
    layers: int


class MemoryFit:
    """For the micro-batches that an order has in flight on each stage at the moments when its device has most.

    These are the moments when most wait for their B, for their W, and for either: what waits for its W is whole again,
    recomputed or not. The layers that save most memory for their time are recomputed first, each type on a stage in its
    best way. That is not always the least time, and other moments may need more: nothing is proved by it.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, order: Schedule) -> None:
        self._plan = plan
        placement = choice.on(plan.cluster.devices)
        self._length = len(placement.chains[0])
        self._stages_of = placement.stages_of
        self._held = [_fullest(order, device) for device in range(placement.devices)]
        shares = [b - a for a, b in pairwise(ends_of(plan.model, choice.pieces, choice.lengths))]
        self._moments = [[one.of_whole(shares) for one in own] for own in self._held]
        self._known: dict[tuple[object, ...], Need] = {}
        model, always, unit = plan.model, plan.recompute is Decide.ALWAYS, plan.resolution
        kept = [
            layer.activation * (layer.recompute[0].keeps if always and layer.recompute else 1)
            for layer in model.sequence
        ]
        assert plan.cluster.capacity is not None, "memory is limited"
        self._capacity = [int(room / unit) for room in plan.cluster.capacity]
        # From the first layer on, in units of the resolution: what a stage has is the difference of two.
        self._memory = [*accumulate((int(layer.memory / unit) for layer in model.sequence), initial=0)]
        self._kept = [*accumulate((int(each / unit) for each in kept), initial=0)]
        self._split = [
            *accumulate((int((one.activation - one.freed_by_backward) / unit) for one in model.sequence), initial=0)
        ]
        self._number = [
            (kind, [*accumulate((layer.name == kind.name for layer in model.sequence), initial=0)])
            for kind in model.kinds
            if kind.recompute and plan.recompute is Decide.FREE
        ]

    def reserve(self, amounts: Sequence[int]) -> None:
        """So much less room on each device from now on: what an order turned out to hold at other moments."""
        self._capacity = [room - amount for room, amount in zip(self._capacity, amounts, strict=True)]
        self._known.clear()

    def lacking(self, problem: Problem) -> int:
        """What a partition's problem lacks on all devices, in units of the resolution, as far as it is told here."""
        of, static = problem.stages, problem.static
        held = [
            static[device]
            + max(
                sum(number * of[s].activation for s, number in one.kept.items())
                + sum(number * (of[s].activation - of[s].freed) for s, number in one.split.items())
                for one in moments
            )
            for device, moments in enumerate(self._held)
        ]
        return sum(max(0, amount - room) for amount, room in zip(held, self._capacity, strict=True))

    def need(self, device: int, cuts: list[int]) -> Need:
        """What a device has to recompute where stage k of a chain has the layers from cuts[k] to before cuts[k + 1]."""
        at = [(s, cuts[s % self._length], cuts[s % self._length + 1]) for s in self._stages_of[device]]
        key = device, *at
        if key not in self._known:
            self._known[key] = self._least(device, at)
        return self._known[key]

    def partition(self, cuts: list[int]) -> Partition:
        """The partition with what all its devices have to recompute."""
        rows: list[tuple[Recomputed, ...]] = [()] * self._length
        for device in range(len(self._stages_of)):
            for stage, own in self.need(device, cuts).recompute.items():
                # Chains have the same stages: what one needs more than another is recomputed on both.
                rows[stage % self._length] = max(rows[stage % self._length], own, key=_layers)
        return Partition(tuple(b - a for a, b in pairwise(cuts)), tuple(rows) if any(rows) else ())

    def _least(self, device: int, at: list[tuple[int, int, int]]) -> Need:
        moments, savings = self._moments[device], list[_Saving]()
        lacking = [-self._capacity[device]] * len(moments)
        for stage, start, stop in at:
            memory, kept, split = (sums[stop] - sums[start] for sums in (self._memory, self._kept, self._split))
            lacking = [
                before + memory + one.kept[stage] * kept + one.split[stage] * split
                for before, one in zip(lacking, moments, strict=True)
            ]
            for kind, before in self._number:
                savings += self._savings(stage, kind, before[stop] - before[start], moments)
        time, chosen, taken = 0.0, dict[int, tuple[Recomputed, ...]](), set[tuple[int, str]]()
        for one in sorted(savings, key=lambda each: each.time / max(each.memory)):
            wanted = [ceil(lack / less) for lack, less in zip(lacking, one.memory, strict=True) if lack > 0 and less]
            if not wanted or (one.stage, one.layer.name) in taken:
                continue
            taken.add((one.stage, one.layer.name))
            number = min(one.layers, max(wanted))
            lacking = [lack - number * less for lack, less in zip(lacking, one.memory, strict=True)]
            time += number * one.time
            chosen[one.stage] = (*chosen.get(one.stage, ()), Recomputed(one.layer.name, one.way.name, number))
        return Need(time, max(0, *lacking), chosen)

    def _savings(self, stage: int, layer: LayerType, number: int, moments: Sequence[_Moment]) -> Iterator[_Saving]:
        for way in layer.recompute if number else ():
            each = int(layer.activation * (1 - way.keeps) / self._plan.resolution)
            memory = tuple(one.kept[stage] * each for one in moments)
            if max(memory) > 0:
                yield _Saving(memory, float(way.time), stage, layer, way, number)


def _layers(recompute: tuple[Recomputed, ...]) -> int:
    return sum(one.layers for one in recompute)


def _fullest(order: Schedule, device: int) -> list[_Moment]:
    """The moments at which most micro-batches wait on the device for their B, for their W, and for either."""
    now = _Moment(Counter(), Counter())
    most = [now] * 3
    numbers = [0] * 3
    for p in order.passes_on(device):
        kept, split = Counter(now.kept), Counter(now.split)
        kept[p.stage] += (p.kind is F) - (p.kind in (B, BW))
        split[p.stage] += (p.kind is B) - (p.kind is W)
        now = _Moment(kept, split)
        for at, number in enumerate((kept.total(), split.total(), kept.total() + split.total())):
            if number > numbers[at]:
                most[at], numbers[at] = now, number
    return list({id(one): one for one in most}.values())
