"""Rounding of derived numbers.

The formulas are no more precise than four digits, and a search counts in these steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log2, log10

from pipesched.layers.layer import LayerType, RecomputeMode


class Steps:
    """Steps to which derived costs are rounded, chosen by the largest layer.

    `time` is a power of ten, at most a thousandth of its forward, and `memory` a power of two, at most 1/512 of its
    activation, both in the units of the layers. Costs are rounded to multiples of these.
    """

    def __init__(self, layers: Sequence[LayerType]) -> None:
        longest = max((float(layer.forward) for layer in layers), default=0.0) or 1.0
        most = max((float(layer.activation) for layer in layers), default=0.0) or 1.0
        self.time = Fraction(10) ** (floor(log10(longest)) - 3)
        self.memory = Fraction(2) ** (floor(log2(most)) - 9)

    def layer(self, layer: LayerType) -> LayerType:
        """Return the layer with times rounded to the nearest step, memory up and memory freed down.

        So a rounded plan that fits in memory also fits exactly.
        """
        activation = self.up(layer.activation)
        return replace(
            layer,
            forward=self.nearest(layer.forward),
            backward=self.nearest(layer.backward),
            weight=None if layer.weight is None else self.nearest(layer.weight),
            fused=None if layer.fused is None else self.nearest(layer.fused),
            memory=self.up(layer.memory),
            activation=activation,
            freed_by_backward=min(activation, self.down(layer.freed_by_backward)),
            recompute=tuple(self._mode(mode, layer.activation, activation) for mode in layer.recompute),
        )

    def _mode(self, mode: RecomputeMode, exact: Fraction, activation: Fraction) -> RecomputeMode:
        keeps = min(Fraction(1), self.up(mode.keeps * exact) / activation) if activation else mode.keeps
        return mode._replace(time=self.nearest(mode.time), keeps=keeps)

    def nearest(self, time: Fraction) -> Fraction:
        """Return a time rounded to the nearest step."""
        return round(time / self.time) * self.time

    def up(self, memory: Fraction) -> Fraction:
        """Return memory in use, rounded up to a step."""
        return ceil(memory / self.memory) * self.memory

    def down(self, memory: Fraction) -> Fraction:
        """Return available memory, rounded down to a step."""
        return floor(memory / self.memory) * self.memory
