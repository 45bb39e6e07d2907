"""Balanced partition by local search: layers move between stages until the largest device load cannot decrease.

The load counts the path from the first stage to the device and back. No bound is proved; the master problem and the
search over published orders start from this partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from formulations.partition.extra_loads import ExtraLoads
from pipesched.int64_arrays import IntArray
from pipesched.layers.even import some_counts
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import MOST_STAGES_FOR_PAIRS, recut


def balanced(
    plan: PlanProblem, choice: Choice, fit: MemoryFit | None = None, start: Partition | None = None, ends: bool = True
) -> Partition:
    """Return a balanced partition for one placement, by local search from `start` (None: from an arbitrary partition).

    The largest load of a device is minimised; of equal ones, partitions with more even devices and stages are better.
    With `fit`, the time of the layers that must be recomputed to fit the memory is part of the loads, and the memory
    that is lacking even so is minimised first; without, memory is ignored. With `ends`, the path from the first stage
    to the device and back is part of its load if there is one chain. If the plan problem gives the numbers of layers,
    they stay.
    """
    stages = len(choice.on(plan.cluster.devices).chains[0])
    costs, allowed = _Costs(plan, choice, fit, ends), np.array(plan.model.cuts)
    counts = plan.counts or (some_counts(plan.model, stages) if start is None else start.counts)
    cuts = np.array([*accumulate(counts, initial=0)])
    if plan.counts is None:
        at = np.searchsorted(allowed, cuts)
        best = min(costs.values(cuts[None]))
        while True:
            # The later groups of moves are much larger, and are tried only if no single cut gives a better partition.
            for moves in _moves(stages):
                tried = at + moves
                tried = tried[(np.diff(tried) >= plan.model.least_layers).all(axis=1)]
                values = costs.values(allowed[tried]) if len(tried) else []
                least = min(values, default=best)
                if least < best:
                    break
            if least >= best:
                break
            best, at = least, tried[values.index(least)]
        cuts = allowed[at]
    bounds = cuts.tolist()
    counts = tuple(b - a for a, b in pairwise(bounds))
    return recut(plan, counts, Partition(counts) if fit is None else fit.partition(bounds))


@lru_cache(maxsize=64)
def balanced_loads(plan: PlanProblem, choice: Choice, ends: bool) -> Partition:
    """Return a balanced partition without regard to memory and without recomputation by choice.

    With `ends`, the path from the first stage to a device and back is part of its load. The result is cached, since
    many searches start there.
    """
    if plan.recompute is Decide.FREE:
        return balanced_loads(replace(plan, recompute=Decide.NEVER), choice, ends)
    return balanced(plan, choice, ends=ends)


@lru_cache(maxsize=64)
def _moves(stages: int) -> tuple[IntArray, ...]:
    """Return arrays of moves of cuts by one position, entries -1, 0 and 1, each of shape (moves, cuts).

    They move one cut, two cuts, or all cuts between two stages, which passes one layer from one of these to the other.
    The array of two cuts is missing for many stages.
    """
    single = np.zeros((2 * (stages - 1), stages + 1), np.int64)
    for cut in range(1, stages):
        single[2 * cut - 2 : 2 * cut, cut] = -1, 1
    pairs = [
        (a, b) for a, b in combinations(range(len(single)), 2) if a // 2 != b // 2 and stages <= MOST_STAGES_FOR_PAIRS
    ]
    passed = [
        single[a + k : b + k : 2].sum(axis=0) for a, b in combinations(range(0, 2 * stages, 2), 2) for k in (0, 1)
    ]
    return single, *(np.array(rows) for rows in ([single[a] + single[b] for a, b in pairs], passed) if rows)


class _Costs:
    """Evaluator of many partitions at once, given as rows of cuts; `values` returns their keys, the least for the best.

    A key is made of the memory lacking and the loads of devices, from prefix sums of the layers' times.
    """

    def __init__(self, plan: PlanProblem, choice: Choice, fit: MemoryFit | None, ends: bool) -> None:
        self._fit = fit
        placement, cluster = choice.on(plan.cluster.devices), plan.cluster
        length = len(placement.chains[0])
        self._m = plan.microbatches / len(placement.chains)
        self._places_of = [[s % length for s in own] for own in placement.stages_of]
        self._on = np.array([[own.count(k) for k in range(length)] for own in self._places_of], float)
        self._slow = np.array([float(cluster.slowness_of(device)) for device in range(cluster.devices)])
        self._slow_stage = np.array([float(slow) for slow in plan.slowness_of_places(placement)])
        self._first = [min(own) for own in self._places_of] if ends and len(placement.chains) == 1 else []
        self._extra = ExtraLoads.of(plan, choice)
        own = np.array(self._extra.by_position, float)[:, : cluster.devices] * float(plan.tick)
        self._before, self._between, self._after = own
        self._ends = float(self._extra.head * plan.tick), float(self._extra.tail * plan.tick)
        always = plan.recompute is Decide.ALWAYS

        def sums(model: Model, of: Callable[[LayerType], Fraction], again: bool = always) -> list[float]:
            extra = {one.name: float(one.recompute[0].time) if again and one.recompute else 0.0 for one in model.kinds}
            each = {one.name: float(of(one)) + extra[one.name] for one in model.kinds}
            return [*accumulate((each[layer.name] for layer in model.sequence), initial=0.0)]

        # Paths to a device and back are those of a micro-batch's first piece.
        whole, first = plan.model, plan.pieces_of(choice)[0].model
        work = sums(whole, lambda layer: layer.forward + layer.least_backward)
        ahead = sums(first, lambda layer: layer.forward, False)
        busy = sums(whole, lambda layer: layer.forward + layer.least_gradient)
        self._sums: NDArray[np.float64] = np.array([work, busy, ahead, sums(first, _gradient)])

    def values(self, cuts: IntArray) -> list[tuple[int, float, float]]:
        """Return for each row of `cuts`, layer numbers, its key: (memory lacking, largest load, sum of squares).

        The least is best. Memory is in steps, summed over devices; loads are in the file's time unit. The largest load
        includes the path to the device or, without W, the path there and back. The squares are those of the loads of
        devices and of stages.
        """
        at = self._sums[:, cuts]
        work, gradient, ahead, back = at[:, :, 1:] - at[:, :, :-1]
        again, lacking = np.zeros((len(cuts), len(self._places_of))), np.zeros(len(cuts), np.int64)
        if self._fit is not None:
            for device in range(len(self._places_of)):
                needs = self._fit.needs(device, cuts)
                again[:, device] = needs.time
                lacking += needs.excess
        load, busy = (self._m * self._slow * (again + each @ self._on.T) for each in (work, gradient))
        load, busy = load + self._between + self._after, busy + self._between
        worst = load + self._before
        if self._first:
            head, tail = (
                (np.cumsum(each * self._slow_stage, axis=1) - each * self._slow_stage)[:, self._first]
                for each in (ahead, back)
            )
            head, tail = (each + extra for each, extra in zip((head, tail), self._ends, strict=True))
            worst = np.maximum(worst, np.maximum(load + head, busy + tail + self._before))
        # If a device's stages are uneven, micro-batches wait for each other.
        squares = (load * load).sum(axis=1) + self._m**2 * (work * work).sum(axis=1)
        return [*zip(lacking.tolist(), worst.max(axis=1).tolist(), squares.tolist(), strict=True)]


def _gradient(layer: LayerType) -> Fraction:
    return layer.forward + min(layer.backward, layer.full_backward)
