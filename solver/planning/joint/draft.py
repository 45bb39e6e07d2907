"""Partitions as tuples of integers (drafts), fast to change, and their stage costs in ticks and steps of memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from math import lcm
from typing import NamedTuple

import numpy as np

from formulations.partition.stage_terms import ChainPosition
from pipesched.int64_arrays import IntArray, int64_array
from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition, Recomputed
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.problem.passes import BW, B, F, PassKind, W

# The rows of `Costs.ticks`.
KINDS: tuple[PassKind, ...] = (F, B, W, BW)


class Draft(NamedTuple):
    """Partition as integers: stage k of a chain has the layers from cuts[k] up to, not including, cuts[k + 1].

    `recomputed[k][w]` is the number of layers of stage k recomputed in mode w of `StageSums.modes`.
    """

    cuts: tuple[int, ...]
    recomputed: tuple[tuple[int, ...], ...]


class Costs(NamedTuple):
    """Costs of the stages of a draft, in ticks and steps of memory.

    `ticks`, `takes` (memory allocated at the start) and `gives` (memory freed at the end) have a row for each kind of
    pass in `KINDS` and a column for each stage. They are those of one pass. `static` is the memory of parameters and
    optimizer state, by stage.
    """

    ticks: IntArray
    takes: IntArray
    gives: IntArray
    static: IntArray


class StageSums:
    """Prefix sums of the layers' times and memory, so that the costs of a stage are differences of two entries.

    `slowness` has for each stage of a chain the factor by which its device multiplies layers' times; empty: all are 1.
    `modes` are all (layer type, mode of recomputing it), by whose index drafts count recomputed layers.
    """

    def __init__(self, plan: PlanProblem, slowness: Sequence[Fraction] = ()) -> None:
        self.plan = plan
        self.modes = tuple((kind, mode) for kind in plan.model.kinds for mode in kind.recompute)
        finer = lcm(*(each.denominator for each in slowness))
        # Layer times are multiples of `finer` ticks, so that multiplied by any device's slowness they are whole ticks.
        model, tick, unit = plan.model, plan.tick * finer, plan.resolution
        self._slower = int64_array([int(each * finer) for each in slowness] or [1])
        # All in one array, so that a draft's costs are one difference.
        self._all = np.stack(
            [
                self._sums(lambda layer: layer.forward / tick),
                self._sums(lambda layer: layer.backward / tick),
                self._sums(lambda layer: (layer.weight or Fraction(0)) / tick),
                self._sums(lambda layer: layer.full_backward / tick),
                self._sums(lambda layer: layer.activation / unit),
                self._sums(lambda layer: layer.freed_by_backward / unit),
                self._sums(lambda layer: layer.memory / unit),
            ]
        )
        self._count = [self._number_of(kind.name) for kind, _ in self.modes]
        self._again = int64_array([int(mode.time / tick) for _, mode in self.modes])
        self._saved = int64_array([int(kind.activation * (1 - mode.keeps) / unit) for kind, mode in self.modes])
        self._overhead = int(model.forward_overhead / tick), int(model.backward_overhead / tick)

    def _sums(self, of: Callable[[LayerType], Fraction]) -> IntArray:
        of_kind = {kind.name: int(of(kind)) for kind in self.plan.model.kinds}
        each = (of_kind[layer.name] for layer in self.plan.model.sequence)
        return int64_array([*accumulate(each, initial=0)])

    def _number_of(self, name: str) -> IntArray:
        return self._sums(lambda layer: Fraction(layer.name == name))

    def costs(self, draft: Draft) -> Costs:
        """Return the costs of every stage of a chain, in ticks and steps of memory, for this draft."""
        at = self._all[:, list(draft.cuts)]
        total = at[:, 1:] - at[:, :-1]
        ticks, (activation, freed, memory) = total[: len(KINDS)], total[len(KINDS) :]
        more_forward, more_backward = self._overhead
        ticks[0] += more_forward
        ticks[1] += more_backward
        ticks[3] += more_backward
        if any(map(any, draft.recomputed)):
            numbers = int64_array(draft.recomputed)
            again, saved = numbers @ self._again, numbers @ self._saved
            ticks[1] += again
            ticks[3] += again
            activation -= saved
            freed -= saved if self.plan.model.splittable else 0
        if self.plan.whole_last:
            ticks[1:3, -1] = ticks[3, -1], 0
        ticks *= self._slower
        takes, gives = np.zeros_like(ticks), np.zeros_like(ticks)
        takes[0], takes[1] = activation, np.maximum(0, -freed)
        gives[1], gives[2], gives[3] = np.maximum(0, freed), activation - freed, activation
        return Costs(ticks, takes, gives, memory)

    def layers_by_mode(self, cuts: Sequence[int], stage: ChainPosition) -> tuple[int, ...]:
        """Return, for each of `modes`, the number of layers of stage number `stage` that it can recompute.

        Stage k has the layers from `cuts[k]` up to, not including, `cuts[k + 1]`.
        """
        return tuple(int(sums[cuts[stage + 1]] - sums[cuts[stage]]) for sums in self._count)

    def room(self, draft: Draft, stage: ChainPosition, mode: int) -> int:
        """Return how many more layers of a stage could be recomputed in the mode with index `mode` in `modes`.

        A layer is recomputed in one mode only.
        """
        kind = self.modes[mode][0].name
        taken = sum(n for n, (other, _) in zip(draft.recomputed[stage], self.modes, strict=True) if other.name == kind)
        return self.layers_by_mode(draft.cuts, stage)[mode] - taken

    def clipped(self, cuts: tuple[int, ...], recomputed: Sequence[Sequence[int]]) -> Draft:
        """Return the draft with these cuts and, as far as possible, the wanted numbers of recomputed layers.

        `recomputed` has these by stage and mode; no stage recomputes more layers of a type than it has, of which
        earlier modes get theirs first. Where the plan problem asks to recompute always, all layers are recomputed in
        their first mode.
        """
        rows = []
        for stage, wanted in enumerate(recomputed):
            left = {
                kind.name: number
                for (kind, _), number in zip(self.modes, self.layers_by_mode(cuts, stage), strict=True)
            }
            row = []
            for (kind, mode), number in zip(self.modes, wanted, strict=True):
                first = self.plan.recompute is Decide.ALWAYS and mode == kind.recompute[0]
                row.append(left[kind.name] if first else min(number, left[kind.name]))
                left[kind.name] -= row[-1]
            rows.append(tuple(row))
        return Draft(cuts, tuple(rows))

    def of_partition(self, partition: Partition) -> Draft:
        """Return `partition` as a draft: cuts, and by stage and mode the numbers of recomputed layers."""
        rows = []
        for stage in range(partition.stages):
            known = {one[:2]: one.layers for one in partition.recomputed_on(stage)}
            rows.append(tuple(known.get((kind.name, mode.name), 0) for kind, mode in self.modes))
        return Draft(tuple(accumulate(partition.counts, initial=0)), tuple(rows))

    def partition(self, draft: Draft) -> Partition:
        """Return the partition that `draft` describes: layers of each stage and recomputed layers by type and mode."""
        rows = tuple(
            tuple(
                Recomputed(kind.name, mode.name, number)
                for (kind, mode), number in zip(self.modes, row, strict=True)
                if number
            )
            for row in draft.recomputed
        )
        return Partition(tuple(b - a for a, b in pairwise(draft.cuts)), rows if any(rows) else ())
