"""A model: its layers, first to last, and where it may be cut into stages."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

from pipesched.layers.layer import LayerType
from pipesched.layers.parameters import NO_PARAMETERS, Parameters


@dataclass(frozen=True)
class Model:
    """Layers in their order; entries of one name are equal in all but `count` and `with_previous`.

    `forward_overhead` and `backward_overhead` are what every stage adds to each of its passes, whatever it holds;
    `parameters` say what it runs for its parameters.
    """

    layers: tuple[LayerType, ...]
    forward_overhead: Fraction = Fraction(0)
    backward_overhead: Fraction = Fraction(0)
    parameters: Parameters = NO_PARAMETERS

    @cached_property
    def sequence(self) -> tuple[LayerType, ...]:
        """Every layer, one entry each."""
        return tuple(alone for layer in self.layers for alone in [layer.alone] * layer.count)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The numbers of layers before which a stage may begin: 0 first, and the number of layers last."""
        starts = [0, *accumulate(layer.count for layer in self.layers)]
        closed = {at for at, layer in zip(starts, self.layers, strict=False) if layer.with_previous}
        return tuple(at for at in range(starts[-1] + 1) if at not in closed)

    @property
    def most_stages(self) -> int:
        """The most stages that it can be cut into, none of them empty."""
        return len(self.cuts) - 1

    @cached_property
    def kinds(self) -> tuple[LayerType, ...]:
        """The types of layers, each once, in the order in which they appear."""
        return tuple({layer.name: layer.alone for layer in self.layers}.values())

    @cached_property
    def before_training(self) -> int:
        """Layers before the first one that needs a gradient of its output."""
        return sum(layer.forward_only for layer in self.sequence)

    @property
    def splittable(self) -> bool:
        """True if backwards may run as B and a later W."""
        return self.layers[0].weight is not None

    @property
    def recomputes(self) -> bool:
        """True if some layer may be recomputed."""
        return any(layer.recompute for layer in self.layers)
