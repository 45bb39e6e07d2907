"""A model: its layers in order, and the positions at which it may be cut into stages."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

from pipesched.layers.layer import LayerType
from pipesched.layers.parameters import NO_PARAMETERS, Parameters


@dataclass(frozen=True)
class Model:
    """A model's layers in order; entries with the same name are equal except in `count` and `with_previous`.

    Every stage adds the time `forward_overhead` to its F, and `backward_overhead` to its B or BW, none to its W;
    `parameters` is the work of stages for their parameters. With `empty_stages` a stage may have no layer.
    """

    layers: tuple[LayerType, ...]
    forward_overhead: Fraction = Fraction(0)
    backward_overhead: Fraction = Fraction(0)
    parameters: Parameters = NO_PARAMETERS
    empty_stages: bool = False

    @cached_property
    def sequence(self) -> tuple[LayerType, ...]:
        """All layers in order, one entry for each."""
        return tuple(alone for layer in self.layers for alone in [layer.alone] * layer.count)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The positions before which a stage may begin, as numbers of layers.

        The first is 0, and the last the number of all layers.
        """
        starts = [0, *accumulate(layer.count for layer in self.layers)]
        closed = {at for at, layer in zip(starts, self.layers, strict=False) if layer.with_previous}
        return tuple(at for at in range(starts[-1] + 1) if at not in closed)

    @cached_property
    def known_costs(self) -> dict[tuple[int, int, object], Any]:
        """The costs of stages computed so far, by first layer, layer after the last, and recomputation.

        `stage_costs` fills it in: searches ask for the costs of the same stages in many partitions.
        """
        return {}

    @property
    def most_stages(self) -> int:
        """The largest number of stages into which the model can be cut; without limit where some may be empty."""
        return sys.maxsize if self.empty_stages else len(self.cuts) - 1

    @property
    def least_layers(self) -> int:
        """The least number of layers of a stage."""
        return 0 if self.empty_stages else 1

    @cached_property
    def kinds(self) -> tuple[LayerType, ...]:
        """The types of layers, each once, in order of appearance."""
        return tuple({layer.name: layer.alone for layer in self.layers}.values())

    @cached_property
    def before_training(self) -> int:
        """The number of layers before the first one that needs a gradient of its output."""
        return sum(layer.forward_only for layer in self.sequence)

    @property
    def splittable(self) -> bool:
        """True if backwards may run as B and a later W."""
        return self.layers[0].weight is not None

    @property
    def overlaps(self) -> bool:
        """True if a forward and a full backward may run as one block."""
        return any(layer.overlapped is not None for layer in self.layers)

    @property
    def trains(self) -> bool:
        """True if some layer has a backward: without one there are no gradients to exchange, and no optimizer."""
        return any(layer.trains for layer in self.layers)

    @property
    def recomputes(self) -> bool:
        """True if some layer may be recomputed."""
        return any(layer.recompute for layer in self.layers)
