"""Derived numbers rounded to four digits: formulas are good for no more, and a search counts in steps of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log2, log10

from pipesched.layers.layer import LayerType, RecomputeMode


class Steps:
    """A power of ten for times, a power of two for memory: a thousandth or more of the largest layer's."""

    def __init__(self, layers: Sequence[LayerType]) -> None:
        longest = max((float(layer.forward) for layer in layers), default=0.0) or 1.0
        most = max((float(layer.activation) for layer in layers), default=0.0) or 1.0
        self.time = Fraction(10) ** (floor(log10(longest)) - 3)
        self.memory = Fraction(2) ** (floor(log2(most)) - 9)

    def layer(self, layer: LayerType) -> LayerType:
        """Times to the nearest step; memory up, what is given back down: what fits by the numbers must fit."""
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
            recompute=tuple(self._way(way, layer.activation, activation) for way in layer.recompute),
        )

    def _way(self, way: RecomputeMode, exact: Fraction, activation: Fraction) -> RecomputeMode:
        keeps = min(Fraction(1), self.up(way.keeps * exact) / activation) if activation else way.keeps
        return way._replace(time=self.nearest(way.time), keeps=keeps)

    def nearest(self, time: Fraction) -> Fraction:
        """A time, rounded."""
        return round(time / self.time) * self.time

    def up(self, memory: Fraction) -> Fraction:
        """Memory in use, rounded up."""
        return ceil(memory / self.memory) * self.memory

    def down(self, memory: Fraction) -> Fraction:
        """Memory that is there, rounded down."""
        return floor(memory / self.memory) * self.memory
