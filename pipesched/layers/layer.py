"""A type of layer: what one layer costs and holds, and how it may be recomputed. Exact numbers in the file's units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple


class RecomputeMode(NamedTuple):
    """A mode that keeps less of a layer's activation, for more time in its backward.

    `time` is added to the backward. `keeps` is the share of the layer's activation that stays from the forward to
    the backward. Memory of the recomputation itself while it runs is not counted.
    """

    name: str
    time: Fraction
    keeps: Fraction


@dataclass(frozen=True)
class LayerType:
    """Equal layers that follow each other: `count` of them, each with these costs.

    Times are those of one micro-batch. Without `weight` the backward is never split and `backward` is the full one;
    with it, `fused` is a full backward in one go (None: backward + weight). `memory` is occupied at all times
    (parameters, gradients, optimizer); `activation` is taken by a forward, of which the backward for the input gives
    back `freed_by_backward` (negative: it takes more). `with_previous`: shares a stage with the layer before it.

    Where a micro-batch is cut into pieces of its sequence, `attention` is the share of the forward that grows with what
    is before, `attention_backward` that of the full backward; `kept_for_later` is the part of the activation (keys and
    values) that stays to the end of the first piece's backward, recomputed or not.

    A layer that is `forward_only` is frozen, and so is all before it: no gradient reaches it, and it has no backward.

    For its parameters a stage takes the sums over its layers: `gather` and `reduce` are times of collectives, `step`
    that of the optimizer, `gathered` the memory of gathered parameters.
    """

    name: str
    forward: Fraction
    backward: Fraction
    count: int = 1
    weight: Fraction | None = None
    fused: Fraction | None = None
    memory: Fraction = Fraction(0)
    activation: Fraction = Fraction(0)
    freed_by_backward: Fraction = Fraction(0)
    recompute: tuple[RecomputeMode, ...] = ()
    with_previous: bool = False
    attention: Fraction = Fraction(0)
    attention_backward: Fraction = Fraction(0)
    kept_for_later: Fraction = Fraction(0)
    gather: Fraction = Fraction(0)
    gathered: Fraction = Fraction(0)
    reduce: Fraction = Fraction(0)
    step: Fraction = Fraction(0)
    forward_only: bool = False

    @property
    def full_backward(self) -> Fraction:
        """A backward in one go."""
        whole = self.backward + (self.weight or 0)
        return whole if self.fused is None else self.fused

    @property
    def trains(self) -> bool:
        """True if it has a backward."""
        return bool(self.full_backward) and not self.forward_only

    @property
    def least_backward(self) -> Fraction:
        """The least time that a backward takes in all, in one pass or in two."""
        return min(self.full_backward, self.backward + (self.weight or 0))

    @property
    def alone(self) -> LayerType:
        """One layer of this type, as two entries of a file with the same name must have it."""
        return replace(self, count=1, with_previous=False)

    def way(self, name: str) -> RecomputeMode:
        """The recomputation mode with this name; KeyError where there is none."""
        for one in self.recompute:
            if one.name == name:
                return one
        raise KeyError(name)
