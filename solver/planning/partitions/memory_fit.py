"""What must be recomputed for an order's micro-batches to fit the memory, device by device, with little time lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple

from pipesched.layers.layer import LayerType, RecomputeWay
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.problem.passes import BW, B, F
from pipesched.schedule.schedule import Schedule


class Need(NamedTuple):
    """What one device recomputes: the time it takes for a micro-batch, and on which of its stages what.

    `excess` is the memory that is lacking even so, in units of the resolution.
    """

    time: float
    excess: int
    recompute: dict[int, tuple[Recomputed, ...]]


class _Saving(NamedTuple):
    """One way to recompute layers of a type on a stage; `memory` and `time` of one of them."""

    memory: int
    time: float
    stage: int
    layer: LayerType
    way: RecomputeWay
    layers: int


class MemoryFit:
    """For the micro-batches that an order has in flight on each stage at the moment when its device has most.

    The layers that save most memory for their time are recomputed first, each type on a stage in its best way. That is
    not always the least time, and other moments may need more: nothing is proved by it.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, order: Schedule) -> None:
        self._plan = plan
        placement = choice.on(plan.cluster.devices)
        self._length = len(placement.chains[0])
        self._stages_of = placement.stages_of
        self._in_flight = [_most_in_flight(order, device) for device in range(placement.devices)]
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
        self._number = [
            (kind, [*accumulate((layer.name == kind.name for layer in model.sequence), initial=0)])
            for kind in model.kinds
            if kind.recompute and plan.recompute is Decide.FREE
        ]

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
        lacking, savings = -self._capacity[device], list[_Saving]()
        for stage, start, stop in at:
            in_flight = self._in_flight[device][stage]
            lacking += self._memory[stop] - self._memory[start] + in_flight * (self._kept[stop] - self._kept[start])
            for kind, before in self._number:
                savings += self._savings(stage, kind, before[stop] - before[start], in_flight)
        time, chosen, taken = 0.0, dict[int, tuple[Recomputed, ...]](), set[tuple[int, str]]()
        for one in sorted(savings, key=lambda each: each.time / each.memory):
            if lacking <= 0:
                break
            if (one.stage, one.layer.name) in taken:
                continue
            taken.add((one.stage, one.layer.name))
            number = min(one.layers, ceil(lacking / one.memory))
            lacking, time = lacking - number * one.memory, time + number * one.time
            chosen[one.stage] = (*chosen.get(one.stage, ()), Recomputed(one.layer.name, one.way.name, number))
        return Need(time, max(0, lacking), chosen)

    def _savings(self, stage: int, layer: LayerType, number: int, in_flight: int) -> Iterator[_Saving]:
        for way in layer.recompute if number else ():
            memory = in_flight * int(layer.activation * (1 - way.keeps) / self._plan.resolution)
            if memory > 0:
                yield _Saving(memory, float(way.time), stage, layer, way, number)


def _layers(recompute: tuple[Recomputed, ...]) -> int:
    return sum(one.layers for one in recompute)


def _most_in_flight(order: Schedule, device: int) -> Counter[int]:
    """Of each stage the micro-batches between forward and backward at the moment when they are most on the device."""
    now, most = Counter[int](), Counter[int]()
    for p in order.passes_on(device):
        now[p.stage] += (p.kind is F) - (p.kind in (B, BW))
        if now.total() > most.total():
            most = Counter(now)
    return most
