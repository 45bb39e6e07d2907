"""A balanced partition: cuts moved one at a time until no device's load, with the way to it and back, can be less.

Nothing is proved by it. It is where the master and the published orders begin.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

from pipesched.layers.even import some_counts
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from solver.planning.partitions.memory_fit import MemoryFit
from solver.planning.partitions.nearby import moved_cuts, recut

_MOST_MOVES = 2_000


def balanced(plan: PlanProblem, choice: Choice, fit: MemoryFit | None = None) -> Partition:
    """For one placement. Where `fit` is given, what has to be recomputed counts; else memory does not."""
    placement = choice.on(plan.cluster.devices)
    stages = len(placement.chains[0])
    costs = _Costs(plan, choice, fit)
    cuts = list(accumulate(plan.counts or some_counts(plan.model, stages), initial=0))
    best = costs.value(cuts)
    for _ in range(0 if plan.counts is not None else _MOST_MOVES):
        # Two cuts at once are many more to try: only where no single one is better.
        for together in (1, 2):
            tried = ((costs.value(each), each) for each in moved_cuts(plan.model, cuts, together))
            value, moved = min(tried, default=(best, cuts))
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
        again = 1 if plan.recompute is Decide.ALWAYS else 0
        self.one_chain = len(self.placement.chains) == 1
        self.slowness = [float(plan.cluster.slowness_of(d)) for d in range(plan.cluster.devices)]
        self.equal = not plan.cluster.slowness
        layers = plan.model.sequence
        extra = [float(layer.recompute[0].time) * again if layer.recompute else 0.0 for layer in layers]
        work = [float(layer.forward + layer.least_backward) + more for layer, more in zip(layers, extra, strict=True)]
        gradient = [
            float(layer.forward + min(layer.backward, layer.full_backward)) + more
            for layer, more in zip(layers, extra, strict=True)
        ]
        self.work = list(accumulate(work, initial=0.0))
        self.gradient = list(accumulate(gradient, initial=0.0))
        self.forward = list(accumulate((float(layer.forward) for layer in layers), initial=0.0))

    def _before(self, sums: list[float], cuts: list[int], stage: int) -> float:
        """The time of the stages before this one, each on its device."""
        if self.equal:
            return sums[cuts[stage]]
        where = self.placement.stage_device
        return sum(self.slowness[where[k]] * (sums[cuts[k + 1]] - sums[cuts[k]]) for k in range(stage))

    def value(self, cuts: list[int]) -> tuple[int, float, float]:
        """The memory lacking; the largest load with head, or without W with head and tail; the loads' squares."""
        work, gradient = ([sums[cut] for cut in cuts] for sums in (self.work, self.gradient))
        lacking, squares, worst = 0, 0.0, 0.0
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
                head, tail = (self._before(sums, cuts, first) for sums in (self.forward, self.gradient))
                worst = max(worst, load + head, busy + tail)
        return lacking, worst, squares
