"""Integer tables for the bound by devices: prefix sums over layers, and the recomputation modes of every stage.

Layer times are in a unit of several ticks, of which a device needs `slower[device]` ticks for each. Memory is in steps,
rounded down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import accumulate
from math import ceil, floor, lcm

import numpy as np

from formulations.partition.extra_loads import ExtraLoads
from formulations.partition.partition_model import MOST_STEPS
from pipesched.int64_arrays import IntArray, int64_array
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem

# Number of a stage's modes that are distinguished; the check uses the same.
_MOST_MODES = 32
_Mode = tuple[int, int, int]


class StageTables:
    """Tables for one placement; `places` are the layers before which the model may be cut, a place its index there.

    `forward`, `gradient`, `backward`, `busy` and `memory` are sums over the layers before each place. `backward` is the
    least that backwards add to a device's work, `busy` the least that they add until the gradient is computed.
    `modes[:, a, b]` has for each mode of recomputing layers of a stage from place a to b three entries: the time it
    adds to the backward, the memory occupied at least from a forward to its gradient, and that occupied to the end of
    its last pass; -1 pads missing modes. `overhead` has what every forward and backward of a stage take in addition;
    `capacity` is the memory by device less that of modules (empty: unlimited), `extra` the loads of modules.
    """

    def __init__(self, plan: PlanProblem, choice: Choice) -> None:
        model, cluster = plan.model, plan.cluster
        finer = lcm(*(each.denominator for each in cluster.slowness))
        self.slower = [int(cluster.slowness_of(device) * finer) for device in range(cluster.devices)]
        self._plan, self._tick = plan, plan.tick * finer
        step = plan.resolution * max(1, ceil(max(cluster.capacity or (Fraction(0),)) / plan.resolution / MOST_STEPS))
        self.extra, self._step = ExtraLoads.of(plan, choice), step
        room = zip(cluster.capacity or (), self.extra.memory, strict=False)
        self.capacity = [ceil((each - extra) / step) for each, extra in room]
        self.places = np.array(model.cuts)
        least = (lambda one: min(one.backward, one.full_backward)) if model.splittable else _full
        self.forward, self.gradient = self._times(lambda one: one.forward), self._times(least)
        self.backward = self._times(lambda one: one.least_backward)
        self.busy = self._times(lambda one: one.least_gradient)
        self.memory = self._sums(floor(one.memory / step) for one in model.sequence)
        self.overhead = int(model.forward_overhead / self._tick), int(model.backward_overhead / self._tick)
        self.modes = self._modes_of_stages([self._of_layer(one) for one in model.sequence])

    def _times(self, of: Callable[[LayerType], Fraction]) -> IntArray:
        return self._sums(int(of(one) / self._tick) for one in self._plan.model.sequence)

    def _sums(self, numbers: Iterable[int]) -> IntArray:
        found: IntArray = int64_array([*accumulate(numbers, initial=0)])[self.places]
        return found

    def _of_layer(self, layer: LayerType) -> tuple[_Mode, ...]:
        """Return the allowed modes of a layer as triples.

        A triple is additional time, memory until its gradient, and memory until its last pass. Times are in the tables'
        unit, memory in steps of the tables, both rounded down. The time is that of recomputation.
        """
        late = floor((layer.activation - layer.freed_by_backward) / self._step)

        def mode_of(time: Fraction, keeps: Fraction) -> _Mode:
            kept = floor(layer.activation * keeps / self._step)
            return int(time / self._tick), kept, min(kept, late)

        whole, modes = mode_of(Fraction(0), Fraction(1)), [mode_of(one.time, one.keeps) for one in layer.recompute]
        if self._plan.recompute is Decide.ALWAYS:
            return tuple(modes[:1]) or (whole,)
        return (whole,) if self._plan.recompute is Decide.NEVER else (whole, *modes)

    def _modes_of_stages(self, layers: list[tuple[_Mode, ...]]) -> IntArray:
        # Layers are of few types, so most stages have the layers of another one, at another place.
        @cache
        def and_layer(modes: tuple[_Mode, ...], layer: tuple[_Mode, ...]) -> tuple[_Mode, ...]:
            return _fewest({(x + p, y + q, z + r) for x, y, z in modes for p, q, r in layer})

        number = len(self.places)
        found = np.full((3, number, number, _MOST_MODES), -1, np.int64)
        for a in range(number):
            own: tuple[_Mode, ...] = ((0, 0, 0),)
            found[:, a, a, 0] = 0 if self._plan.model.empty_stages else -1
            for b in range(a + 1, number):
                for layer in layers[self.places[b - 1] : self.places[b]]:
                    own = and_layer(own, layer)
                found[:, a, b, : len(own)] = int64_array(own).T
        return found


def _full(layer: LayerType) -> Fraction:
    return layer.full_backward


def _fewest(modes: set[_Mode]) -> tuple[_Mode, ...]:
    """Return the modes in ascending order of time, each with less memory of one of the two kinds than the one before.

    More than `_MOST_MODES` are merged to that number, neighbours to their componentwise least.
    """
    kept: list[_Mode] = []
    for mode in sorted(modes):
        if all(mode[1] < one[1] or mode[2] < one[2] for one in kept[-1:]):
            kept.append(mode)
    if len(kept) <= _MOST_MODES:
        return tuple(kept)
    parts = np.array_split(int64_array(kept), _MOST_MODES)
    return tuple((int(part[:, 0].min()), int(part[:, 1].min()), int(part[:, 2].min())) for part in parts)
