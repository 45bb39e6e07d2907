"""Prefix sums over a model's layers in integers, so that the costs of any stage are differences of two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.recompute_rule import FULL
from pipesched.layers.roles import Role, role_of
from solver.planning.quick.order_ends import WholeArray

# Upper limit of the sum of times over all micro-batches in 64-bit integers.
_MOST = 2**61


class RecomputeSums(NamedTuple):
    """Prefix sums over layers of the ticks that recomputation adds, and of the memory that it saves, in steps."""

    time: WholeArray
    saved: WholeArray


class LayerSums:
    """Prefix sums over a model's layers: entry n of each array is over the first n layers, for n from 0 to all.

    `forward` and `backward` (one full pass) are in ticks; `memory` (of parameters) and `activation` in steps of memory.
    `number[n]` counts the transformer layers among the first n; `full` has the recomputation sums over transformer
    layers alone, each recomputed from its input, None if there are none, or one of them has no such mode.
    """

    def __init__(self, plan: PlanProblem) -> None:
        self._plan, layers = plan, plan.model.sequence
        self._kinds = {kind.name: kind for kind in plan.model.kinds}
        place = {name: at for at, name in enumerate(self._kinds)}
        self._which = np.array([place[layer.name] for layer in layers])
        work = sum((layer.forward + layer.full_backward for layer in layers), Fraction(0)) / plan.tick
        again = sum((mode.time for layer in layers for mode in layer.recompute), Fraction(0)) / plan.tick
        passes = plan.microbatches * (plan.cluster.devices + 1)
        self._type: type = np.int64 if (work + again) * passes < _MOST else object
        self.forward = self._sums(lambda kind: kind.forward / plan.tick)
        self.backward = self._sums(lambda kind: kind.full_backward / plan.tick)
        self.memory = self._sums(lambda kind: kind.memory / plan.resolution)
        self.activation = self._sums(lambda kind: kind.activation / plan.resolution)
        counted = np.array([role_of(name) is Role.TRANSFORMER for name in self._kinds])[self._which]
        self.number = np.concatenate([[0], np.cumsum(counted)])
        self.full = self._full(self._which[counted])
        self._known: dict[tuple[tuple[str, str], ...], RecomputeSums] = {}

    def recomputed(self, modes: Mapping[str, str]) -> RecomputeSums:
        """Return the sums over all layers if each layer type is recomputed in the mode that `modes` names for it.

        Types that it does not name are not recomputed.
        """
        key = tuple(sorted(modes.items()))
        if key not in self._known:
            self._known[key] = self._sums_of_modes(
                {name: self._kinds[name].mode(mode) for name, mode in modes.items()}, self._which
            )
        return self._known[key]

    def _full(self, which: WholeArray) -> RecomputeSums | None:
        """Return the prefix sums of time added and memory saved, over transformer layers all recomputed whole.

        `which` has for each transformer layer, in order, the index of its type in the model's `kinds`; entry n of the
        sums is over the first n of these. None without any, or if one has no such mode.
        """
        modes = {name: mode for name, kind in self._kinds.items() for mode in kind.recompute if mode.name in FULL}
        names = [*self._kinds]
        if not len(which) or any(names[at] not in modes for at in set(which.tolist())):
            return None
        return self._sums_of_modes(modes, which)

    def _sums_of_modes(self, modes: Mapping[str, RecomputeMode], which: WholeArray) -> RecomputeSums:
        plan, none = self._plan, RecomputeMode("", Fraction(0), Fraction(1))
        own = {name: modes.get(name, none) for name in self._kinds}
        return RecomputeSums(
            self._sums(lambda kind: own[kind.name].time / plan.tick, which),
            self._sums(lambda kind: kind.activation * (1 - own[kind.name].keeps) / plan.resolution, which),
        )

    def _sums(self, of: Callable[[LayerType], Fraction], which: WholeArray | None = None) -> WholeArray:
        numbers = [of(kind) for kind in self._kinds.values()]
        assert all(number.denominator == 1 for number in numbers), "in multiples of the problem's own units"
        each: WholeArray = np.array([int(number) for number in numbers], dtype=self._type)
        sums = np.cumsum(each[self._which if which is None else which])
        return np.concatenate([np.zeros(1, self._type), sums])
