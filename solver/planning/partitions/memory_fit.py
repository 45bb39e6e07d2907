"""Heuristic choice of the layers to recompute so that an order's micro-batches in flight fit the memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipesched.int64_arrays import IntArray, int64_array
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.problem.passes import BW, B, F, W
from pipesched.problem.problem import Problem
from pipesched.problem.quantities import DeviceId, MemorySteps, StageId
from pipesched.schedule.schedule import Schedule


class _InFlight(NamedTuple):
    """Micro-batches in flight on a device at one moment, by stage.

    `kept` counts those that wait for their B, `split` those that wait for their W.
    """

    kept: Counter[StageId]
    split: Counter[StageId]

    def in_whole_microbatches(self, shares: Sequence[Fraction]) -> _InFlight:
        """Return the counts in whole micro-batches, rounded up, where each has pieces with these `shares` of it."""
        if len(shares) == 1:
            return self
        found = _InFlight(Counter(), Counter())
        for mine, whole in zip(self, found, strict=True):
            for stage in {each // len(shares) for each in mine}:
                counts = (mine[stage * len(shares) + j] * share for j, share in enumerate(shares))
                whole[stage] = ceil(sum(counts))
        return found


class _Saving(NamedTuple):
    """One mode of recomputing layers of one type on one stage.

    `memory` is what one such layer saves at each moment, in steps, `time` what it costs in the file's unit. `before[i]`
    counts the layers of the type before layer i. `others` are the indices of better modes for the same layers.
    """

    memory: IntArray
    time: float
    stage: StageId
    layer: str
    mode: str
    before: IntArray
    others: list[int]


class RecomputationNeed(NamedTuple):
    """Recomputation that one device needs to fit its memory, for each of several rows of cuts.

    `time` is the time of recomputation for a micro-batch, in the file's unit at speed 1, `excess` the memory that is
    lacking even so, in steps of memory (0 if none), and `layers` the numbers of recomputed layers, of shape (savings,
    rows): a saving is a layer type on a stage with a mode, those with the most memory per time first.
    """

    time: NDArray[np.float64]
    excess: IntArray
    layers: IntArray


class MemoryFit:
    """Choice of the layers to recompute for the micro-batches that a given order keeps in flight, in limited memory.

    It looks at the moments when most micro-batches of a device wait for their B, for their W, or for either; an
    activation that waits for its W occupies its full size, recomputed or not. The layers that save the most memory per
    time are recomputed first, each type on a stage in its best mode. Devices must have capacities. This is a heuristic:
    the time is not always the least, and other moments may need more memory.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, order: Schedule) -> None:
        self._plan = plan
        placement = choice.on(plan.cluster.devices)
        self._length = len(placement.chains[0])
        self._stages_of = placement.stages_of
        self._moments_of_pieces = [_fullest(order, device) for device in range(placement.devices)]
        shares = choice.cut.shares(plan.model)
        self._moments = [[one.in_whole_microbatches(shares) for one in own] for own in self._moments_of_pieces]
        model, always, unit = plan.model, plan.recompute is Decide.ALWAYS, plan.resolution

        def kept(layer: LayerType) -> Fraction:
            return layer.activation * (layer.recompute[0].keeps if always and layer.recompute else 1)

        def sums(of: Callable[[LayerType], Fraction]) -> IntArray:
            each = {kind.name: of(kind) / unit for kind in model.kinds}
            return _sums(each[layer.name] for layer in model.sequence)

        assert plan.cluster.capacity is not None, "memory is limited"
        self._capacity = [int(room / unit) for room in plan.cluster.capacity]
        # Prefix sums over layers, in steps of memory: a stage's value is the difference of two entries.
        self._memory = sums(lambda layer: layer.memory)
        self._gathered = sums(lambda layer: layer.gathered)
        self._kept = sums(kept)
        self._split = sums(lambda layer: layer.activation - layer.freed_by_backward)
        free = plan.recompute is Decide.FREE
        numbers = {kind.name: _sums(layer.name == kind.name for layer in model.sequence) for kind in model.kinds}
        modes = [
            (kind.name, mode, int(kind.activation * (1 - mode.keeps) / unit), numbers[kind.name])
            for kind in model.kinds
            for mode in (kind.recompute if free else ())
        ]
        self._waiting = [
            {s: np.array([[one.kept[s], one.split[s]] for one in moments]).T for s in own}
            for moments, own in zip(self._moments, self._stages_of, strict=True)
        ]
        self._savings = [_savings(waiting, modes) for waiting in self._waiting]

    def reserve(self, amounts: Sequence[MemorySteps]) -> None:
        """Reduce each device's capacity by `amounts`, in steps.

        An order was found to need so much more at other moments. The device of a module of its own, which is the last
        one, is skipped: no partition decides anything there.
        """
        mine = amounts[: len(self._capacity)]
        self._capacity = [room - amount for room, amount in zip(self._capacity, mine, strict=True)]

    def lacking(self, problem: Problem) -> MemorySteps:
        """Return the memory that the problem of a partition lacks, summed over devices, in steps of memory.

        Only the moments considered here count.
        """
        stages, static = problem.stages, problem.static
        gathers = [[s.gather.memory if s.gather else s.workspace.forward for s in (stages[k] for k in own)]
                   for own in self._stages_of]  # fmt: skip
        needed = [
            static[device]
            + max(gathers[device], default=0)
            + max(
                sum(number * stages[s].activation for s, number in one.kept.items())
                + sum(number * (stages[s].activation - stages[s].freed) for s, number in one.split.items())
                for one in moments
            )
            for device, moments in enumerate(self._moments_of_pieces)
        ]
        return sum(max(0, amount - room) for amount, room in zip(needed, self._capacity, strict=True))

    def needs(self, device: DeviceId, cuts: IntArray) -> RecomputationNeed:
        """Return the recomputation that `device` needs to fit its memory, for each row of `cuts`.

        A row has the numbers of layers before each stage, and of all.
        """
        lacking = np.full((len(cuts), len(self._moments[device])), -self._capacity[device])
        for s, (kept, split) in self._waiting[device].items():
            static, activation, deferred = (
                self._between(of, s, cuts) for of in (self._memory, self._kept, self._split)
            )
            lacking += static[:, None] + activation[:, None] * kept + deferred[:, None] * split
        # At least one stage's parameters are gathered.
        gathered = [self._between(self._gathered, s, cuts) for s in self._stages_of[device]]
        lacking += np.max(gathered, axis=0, initial=0)[:, None] if gathered else 0
        savings, time = self._savings[device], np.zeros(len(cuts))
        layers = np.zeros((len(savings), len(cuts)), np.int64)
        for at, one in enumerate(savings):
            if lacking.max() <= 0:
                break
            wanted = np.where(one.memory > 0, -(-lacking // np.maximum(one.memory, 1)), 0).max(axis=1)
            left = np.where(layers[one.others].any(axis=0), 0, self._between(one.before, one.stage, cuts))
            layers[at] = np.clip(wanted, 0, left)
            lacking -= layers[at][:, None] * one.memory
            time += layers[at] * one.time
        return RecomputationNeed(time, np.maximum(lacking.max(axis=1), 0), layers)

    def _between(self, sums: IntArray, stage: StageId, cuts: IntArray) -> IntArray:
        at = stage % self._length
        difference: IntArray = sums[cuts[:, at + 1]] - sums[cuts[:, at]]
        return difference

    def partition(self, cuts: list[int]) -> Partition:
        """Return the partition with these cuts (layer numbers) and the recomputation that all its devices need."""
        rows: list[tuple[Recomputed, ...]] = [()] * self._length
        for device, savings in enumerate(self._savings):
            numbers = self.needs(device, np.array([cuts])).layers[:, 0].tolist()
            for stage in self._stages_of[device]:
                own = tuple(
                    Recomputed(one.layer, one.mode, number)
                    for one, number in zip(savings, numbers, strict=True)
                    if number and one.stage == stage
                )
                # Chains have the same stages: what one needs more than another is recomputed on both.
                rows[stage % self._length] = max(rows[stage % self._length], own, key=_layers)
        return Partition(tuple(b - a for a, b in pairwise(cuts)), tuple(rows) if any(rows) else ())


def _layers(recompute: tuple[Recomputed, ...]) -> int:
    return sum(one.layers for one in recompute)


def _sums(amounts: Iterable[Fraction | int]) -> IntArray:
    return int64_array([*accumulate(map(int, amounts), initial=0)])


def _savings(
    waiting: Mapping[StageId, IntArray], modes: Sequence[tuple[str, RecomputeMode, int, IntArray]]
) -> list[_Saving]:
    """Return the savings of a device, those with the most memory per time first.

    `waiting` has for each stage, by moment, the micro-batches that wait for their B and for their W. `modes` are (layer
    type, mode, steps of memory that it saves, number of layers of the type before each layer).
    """
    found = [
        _Saving(kept * each, float(mode.time), stage, layer, mode.name, before, [])
        for stage, (kept, _) in waiting.items()
        for layer, mode, each, before in modes
        if each > 0 and kept.any()
    ]
    found.sort(key=lambda one: one.time / int(one.memory.max()))
    for at, one in enumerate(found):
        one.others.extend(k for k in range(at) if (found[k].stage, found[k].layer) == (one.stage, one.layer))
    return found


def _fullest(order: Schedule, device: DeviceId) -> list[_InFlight]:
    """Return up to three moments of `order`.

    At these, most micro-batches on `device` wait for their B, their W, or either.
    """
    kept, split = Counter[int](), Counter[int]()
    most, numbers, waiting = [_InFlight(Counter(), Counter())] * 3, [0] * 3, [0] * 3
    for p in order.passes_on(device):
        more, deferred = (p.kind is F) - (p.kind in (B, BW)), (p.kind is B) - (p.kind is W)
        kept[p.stage] += more
        split[p.stage] += deferred
        waiting = [waiting[0] + more, waiting[1] + deferred, waiting[2] + more + deferred]
        if any(number > before for number, before in zip(waiting, numbers, strict=True)):
            now = _InFlight(Counter(kept), Counter(split))
            most = [now if a > b else one for one, a, b in zip(most, waiting, numbers, strict=True)]
            numbers = [*map(max, waiting, numbers)]
    return list({id(one): one for one in most}.values())
