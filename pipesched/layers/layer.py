"""Types of layers: costs and memory of one layer, and its recomputation modes.

Numbers are exact, in the file's units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple


class RecomputeMode(NamedTuple):
    """A mode that keeps less of a layer's activation and takes more time in its backward.

    `time` is added to the backward. `keeps` is the share of the layer's activation that stays from the forward to the
    backward. Memory that the recomputation needs while it runs is not counted.
    """

    name: str
    time: Fraction
    keeps: Fraction


@dataclass(frozen=True)
class LayerType:
    """A type of layer: `count` equal consecutive layers, each with these costs.

    Times are those of one micro-batch. Without `weight` the backward is never split and `backward` is the full one;
    with it, `fused` is the duration of a full backward in one pass (None: backward + weight). `memory` is always in use
    (parameters, gradients, optimizer); `activation` is taken by a forward, and B frees `freed_by_backward` of it
    (negative: it takes more). `with_previous`: the layer is on the same stage as the one before it.

    Where a micro-batch is cut into pieces of its sequence, `attention` is the share of the forward that grows with the
    earlier tokens, `attention_backward` that of `backward` and `weight` together; `kept_for_later` is the part of the
    activation (keys and values) that stays until the end of the first piece's backward, recomputed or not.

    `overlapped` is the time of a forward and a full backward, of two micro-batches, run together as one block: no less
    than the longer of the two, and no more than both in turn. A block of passes of two stages takes less than the
    passes in turn by what the layers of one of the two stages save in sum, the stage for which that is less. None: the
    layer saves nothing in a block.

    A layer that is `forward_only` is frozen, and so are all before it: it gets no gradient, and its backward takes no
    time.

    A stage's work for parameters is the sum over its layers: `gather` and `reduce` are times of collectives, `step`
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
    overlapped: Fraction | None = None

    @property
    def full_backward(self) -> Fraction:
        """The duration of a full backward in one pass.

        In the file's unit of time.
        """
        whole = self.backward + (self.weight or 0)
        return whole if self.fused is None else self.fused

    @property
    def trains(self) -> bool:
        """True if its backward takes time, and it is not `forward_only`."""
        return bool(self.full_backward) and not self.forward_only

    @property
    def saved_in_block(self) -> Fraction:
        """The time that a block of its forward and full backward takes less than the two in turn.

        In the file's unit of time; 0 without blocks.
        """
        return Fraction(0) if self.overlapped is None else self.forward + self.full_backward - self.overlapped

    @property
    def least_backward(self) -> Fraction:
        """The least time that a backward adds to its device's work, in one pass, in two, or in a block.

        In the file's unit of time.
        """
        return min(self.full_backward - self.saved_in_block, self.backward + (self.weight or 0))

    @property
    def least_gradient(self) -> Fraction:
        """The least time that a gradient adds to its device's work until it is computed.

        In the file's unit of time.
        """
        return min(self.backward, self.full_backward - self.saved_in_block)

    @property
    def alone(self) -> LayerType:
        """The same type with a count of 1, and free to be on another stage than the layer before it.

        Two entries of a model with the same name must be equal in this form.
        """
        return replace(self, count=1, with_previous=False)

    def mode(self, name: str) -> RecomputeMode:
        """Return the recomputation mode of this name; KeyError if there is none."""
        for one in self.recompute:
            if one.name == name:
                return one
        raise KeyError(name)
