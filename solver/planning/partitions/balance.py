"""A balanced partition: layers moved one at a time until no device's load, with the way to it and back, can be less.

Nothing is proved by it. It is where the master and the published orders begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

from pipesched.layers.even import some_counts
from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import moved_cuts, passed_on, recut

_MOST_MOVES = 2_000


def balanced(plan: PlanProblem, choice: Choice, fit: MemoryFit | None = None) -> Partition:
    """For one placement. Where `fit` is given, what has to be recomputed counts; else memory does not."""
    placement = choice.on(plan.cluster.devices)
    stages = len(placement.chains[0])
    costs = _Costs(plan, choice, fit)
    cuts = list(accumulate(plan.counts or some_counts(plan.model, stages), initial=0))
    best = costs.value(cuts)
    for _ in range(0 if plan.counts is not None else _MOST_MOVES):
        # Others are many more to try: only where no single cut is better.
        for moves in (moved_cuts(plan.model, cuts, 1), moved_cuts(plan.model, cuts, 2), passed_on(plan.model, cuts)):
            value, moved = min(((costs.value(each), each) for each in moves), default=(best, cuts))
            if value < best:
                break
        if value >= best:
            break
        best, cuts = value, moved
    counts = tuple(b - a for a, b in pairwise(cuts))
    return recut(plan, counts, Partition(counts) if fit is None else fit.partition(cuts))


class _Costs:
    """Sums of times from the first layer on, and what a list of cuts is worth."""

    def __init__(self, plan: PlanProblem, choice: Choice, fit: MemoryFit | None) -> None:
        self.fit = fit
        self.placement = choice.on(plan.cluster.devices)
        self.length = len(self.placement.chains[0])
        self.m = plan.microbatches / len(self.placement.chains)
        self.one_chain = len(self.placement.chains) == 1
        self.slowness = [float(plan.cluster.slowness_of(d)) for d in range(plan.cluster.devices)]
        self.equal = not plan.cluster.slowness
        again = 1 if plan.recompute is Decide.ALWAYS else 0

        def sums(layers: Sequence[LayerType], of: Callable[[LayerType], Fraction]) -> list[float]:
            extra = (float(layer.recompute[0].time) * again if layer.recompute else 0.0 for layer in layers)
            return [*accumulate((float(of(one)) + more for one, more in zip(layers, extra, strict=True)), initial=0.0)]

        # Ways to a device and back are those of the first piece.
        layers, first = (one.model.sequence for one in (plan, plan.pieces_of(choice)[0]))
        self.work = sums(layers, lambda layer: layer.forward + layer.least_backward)
        self.gradient = sums(layers, _gradient)
        self.ahead = [*accumulate((float(layer.forward) for layer in first), initial=0.0)]
        self.behind = sums(first, _gradient)

    def _before(self, sums: list[float], cuts: list[int]) -> list[float]:
        """The time of the stages before each one, all on their devices."""
        if self.equal:
            return [sums[cut] for cut in cuts]
        own = (
            self.slowness[device] * (sums[b] - sums[a])
            for device, (a, b) in zip(self.placement.stage_device, pairwise(cuts), strict=False)
        )
        return list(accumulate(own, initial=0.0))

    def value(self, cuts: list[int]) -> tuple[int, float, float]:
        """The memory lacking; the largest load with head, or without W with head and tail; the loads' squares."""
        work, gradient = ([sums[cut] for cut in cuts] for sums in (self.work, self.gradient))
        lacking, squares, worst = 0, 0.0, 0.0
        heads, tails = (self._before(sums, cuts) for sums in (self.ahead, self.behind))
        for device, held in enumerate(self.placement.stages_of):
            on = [s % self.length for s in held]
            again, slow = 0.0, self.slowness[device]
            if self.fit is not None:
                need = self.fit.need(device, cuts)
                again, lacking = need.time, lacking + need.excess
            load = self.m * slow * (again + sum(work[k + 1] - work[k] for k in on))
            squares += load * load
            worst = max(worst, load)
            if self.one_chain:
                first = min(on)
                busy = self.m * slow * (again + sum(gradient[k + 1] - gradient[k] for k in on))
                worst = max(worst, load + heads[first], busy + tails[first])
        return lacking, worst, squares


def _gradient(layer: LayerType) -> Fraction:
    return layer.forward + min(layer.backward, layer.full_backward)
