"""All stages that one device may run: the cuts between which they lie, their recomputation, and their costs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from math import floor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.problem.quantities import MemorySteps, Ticks

Array = npt.NDArray[np.int64]
Fits = npt.NDArray[np.bool_]

# Ways to recompute beyond so many are put together with the least of each number, which bounds them all.
_MAX_MODES = 32


class Options(NamedTuple):
    """Possible stages of a device as columns: the cuts at which each begins (`begin`) and ends (`end`), and its costs.

    Cuts are indices in `Costs.cuts`; a stage that ends at the cut where it begins has no layer.

    In ticks of one micro-batch: `forward` is F; `gradient` the least time from the start of the backward to its
    gradient; `backward` what the whole backward adds to the device's work; `busy` what F and the gradient add to it.
    `work` is what all its passes would take on the fastest device without recomputation, and `longer` by how many ticks
    F and gradient exceed what they would take there. Memory in steps: `kept` from F to B, `kept_late` the part of it
    that stays until the end of W, `always` at all times.
    """

    begin: Array
    end: Array
    forward: Array
    gradient: Array
    backward: Array
    busy: Array
    work: Array
    longer: Array
    kept: Array
    kept_late: Array
    always: Array


class Costs:
    """Costs of a plan's layers as prefix sums over the cuts between them, without pieces, parameters or additions.

    `cuts` are numbers of layers before a cut, in ascending order from 0 to all. Times are in ticks, memory in units of
    `step`, which is in the file's unit. `options` returns every possible stage on a device.
    """

    def __init__(self, plan: PlanProblem, step: Fraction) -> None:
        self.plan, self.step, self.cuts = plan, step, plan.model.cuts

    def sums(self, numbers: Iterable[Fraction], unit: Fraction) -> Array:
        """Return by cut the sum of `numbers` over the layers before it, in multiples of `unit`.

        There is a number for each layer of the model's sequence; each is rounded down to a multiple of `unit`.
        """
        totals = [*accumulate((floor(each / unit) for each in numbers), initial=0)]
        return np.array([totals[cut] for cut in self.cuts], np.int64)

    def times(self, slowness: Fraction) -> tuple[tuple[Array, Ticks], ...]:
        """Return four least times on a device of this slowness: each by cut, and what every stage adds to it.

        They are F; the backward until its gradient; the work of the whole backward; and the work of the backward up to
        its gradient, which is less in a block of two passes that takes less than both. Each is a pair: the ticks of all
        layers before each cut, and the ticks that every stage adds. All are rounded down.
        """
        model, unit = self.plan.model, self.plan.tick / slowness
        forward, backward = floor(model.forward_overhead / unit), floor(model.backward_overhead / unit)
        whole = [one.least_backward for one in model.sequence]
        full = [one.full_backward for one in model.sequence]
        first = [min(one.backward, one.full_backward) for one in model.sequence] if model.splittable else full
        until = [one.least_gradient for one in model.sequence] if model.splittable else whole
        return (
            (self.sums((one.forward for one in model.sequence), unit), forward),
            (self.sums(first, unit), backward),
            (self.sums(whole, unit), backward),
            (self.sums(until, unit), backward),
        )

    def options(self, slowness: Fraction, fastest: Fraction, most: Ticks) -> Options:
        """Return all possible stages whose F and backward take at most `most` ticks on a device of this slowness.

        `fastest` is the slowness of the fastest device, for the columns that compare with it.
        """
        times, quick, layers = self.times(slowness), self.times(fastest), self.plan.model.sequence
        static, rows = self.sums((one.memory for one in layers), self.step), list[tuple[int, ...]]()
        f, g, backward, until = (added for _, added in times)
        forward, least, all_, _ = (added for _, added in quick)
        for at in range(len(self.cuts)) if self.plan.model.empty_stages and f + backward <= most else ():
            # A stage without a layer has the overheads of its passes.
            rows.append((at, at, f, g, backward, f + until, forward + all_, f + g - forward - least, 0, 0, 0))
        for begin in range(len(self.cuts) - 1):
            recomputations = [(0, 0, 0)]
            for end in range(begin + 1, len(self.cuts)):
                f, g, backward, until = (int(ticks[end] - ticks[begin]) + added for ticks, added in times)
                if f + backward > most:
                    break
                for layer in layers[self.cuts[end - 1] : self.cuts[end]]:
                    recomputations = _smallest(
                        {(a + x, b + y, c + z) for a, b, c in recomputations for x, y, z in self._of(layer, slowness)}
                    )
                forward, least, all_, _ = (int(ticks[end] - ticks[begin]) + added for ticks, added in quick)
                beyond, always = f + g - forward - least, int(static[end] - static[begin])
                work, busy = forward + all_, f + until
                rows += (
                    (begin, end, f, g + time, backward + time, busy + time, work, beyond + time, kept, late, always)
                    for time, kept, late in recomputations
                    if f + backward + time <= most
                )
        return Options(*np.array(rows, np.int64).reshape(-1, len(Options._fields)).T)

    def _of(self, layer: LayerType, slowness: Fraction) -> list[tuple[Ticks, MemorySteps, MemorySteps]]:
        """Return (ticks, memory from F to B, memory until the end of W) of a layer's recomputation modes, and of none.

        They are for a device of this `slowness`. Only the modes that the plan allows.
        """
        found = [(Fraction(0), Fraction(1)), *((mode.time, mode.keeps) for mode in layer.recompute)]
        allowed = {Decide.FREE: found, Decide.NEVER: found[:1], Decide.ALWAYS: found[1:2] or found}[self.plan.recompute]
        late = layer.activation - layer.freed_by_backward
        return [
            (
                floor(time * slowness / self.plan.tick),
                floor(keeps * layer.activation / self.step),
                floor(min(keeps * layer.activation, late) / self.step),
            )
            for time, keeps in allowed
        ]


def _smallest(triples: set[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return the non-dominated triples (ticks, memory from F to B, memory until the end of W).

    If there are many, groups of neighbours are replaced by the minimum of each number.
    """
    front: list[tuple[int, int, int]] = []
    for one in sorted(triples):
        if not any(other[1] <= one[1] and other[2] <= one[2] for other in front):
            front.append(one)
    number = min(len(front), _MAX_MODES)
    groups = (front[at * len(front) // number : (at + 1) * len(front) // number] for at in range(number))
    return [(group[0][0], min(triple[1] for triple in group), min(triple[2] for triple in group)) for group in groups]
