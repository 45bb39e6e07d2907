"""Costs and memory of a partition's stages: sums over their layers, with recomputation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, Recomputed


@dataclass(frozen=True)
class StageCosts:
    """Costs of one stage, exact and in the file's units.

    They are times and memory of one micro-batch, and of the stage's parameters. `forward`, `backward` (B), `weight` (W;
    None if backwards are never split) and `fused` (BW) are the times of passes. F takes `activation`. Of a piece it
    takes `kept_for_later` in addition, which the first piece's backward frees; of a whole micro-batch that is part of
    `activation`. B frees `freed` of it (negative: it takes more). A stage that is `forward_only` gets no gradient. A
    block saves `block_saves` against its two passes, or what the other stage saves if that is less; None where no
    passes run as one block. `memory` is in use at all times. `recomputation` is the part of the backward's time in
    which layers are computed again, `saved` the part of their activation that they do not keep for it; `activation` is
    without it. `gather`, `reduce` and `step` are the times of work for parameters, once each; `gathered` is the memory
    of the gathered parameters.
    """

    forward: Fraction
    backward: Fraction
    weight: Fraction | None
    fused: Fraction
    memory: Fraction
    activation: Fraction
    freed: Fraction
    kept_for_later: Fraction = Fraction(0)
    recomputation: Fraction = Fraction(0)
    saved: Fraction = Fraction(0)
    gather: Fraction = Fraction(0)
    gathered: Fraction = Fraction(0)
    reduce: Fraction = Fraction(0)
    step: Fraction = Fraction(0)
    forward_only: bool = False
    block_saves: Fraction | None = None

    @property
    def work(self) -> Fraction:
        """The least time that one micro-batch's passes add to their device's work.

        In the file's unit of time.
        """
        return self.forward + min(self.fused - (self.block_saves or 0), self.backward + (self.weight or 0))

    def slowed(self, slowness: Fraction) -> StageCosts:
        """Return the costs on a device on which all computation takes `slowness` times as long.

        Passes, the optimizer's step and what blocks save are computation; gathering, reductions and memory stay.
        """
        if slowness == 1:
            return self
        return replace(
            self,
            forward=self.forward * slowness,
            backward=self.backward * slowness,
            weight=None if self.weight is None else self.weight * slowness,
            fused=self.fused * slowness,
            recomputation=self.recomputation * slowness,
            step=self.step * slowness,
            block_saves=None if self.block_saves is None else self.block_saves * slowness,
        )


def stage_costs(model: Model, partition: Partition) -> tuple[StageCosts, ...]:
    """Return the costs of every stage of a partition, in order, on a device of speed 1.

    ValueError if more layers of a name are recomputed than a stage has, KeyError if they do not have the mode.
    """
    return tuple(
        _costs_of_range(model, layers, partition.recomputed_on(stage))
        for stage, layers in enumerate(partition.ranges())
    )


def _costs_of_range(model: Model, layers: range, recomputed: tuple[Recomputed, ...]) -> StageCosts:
    key = layers.start, layers.stop, recomputed
    known: StageCosts | None = model.known_costs.get(key)
    if known is None:
        own = model.sequence[layers.start : layers.stop]
        known = model.known_costs[key] = costs_of(model, own, recomputed)
    return known


def costs_of(model: Model, layers: Sequence[LayerType], recomputed: Sequence[Recomputed] = ()) -> StageCosts:
    """Return the costs of a stage with these layers, one entry for each, on a device of speed 1.

    A recomputed layer adds its time to B as well as to a full backward. While it waits for its W it holds as much as a
    layer that was not recomputed. Raises `ValueError` if more layers of a name are recomputed than the stage has, and
    `KeyError` if they do not have the mode.
    """
    types = {layer.name: layer for layer in layers}
    available = Counter(layer.name for layer in layers)
    numbers = [(layer, available[name]) for name, layer in types.items()]

    def total(of: Callable[[LayerType], Fraction]) -> Fraction:
        return sum((number * of(layer) for layer, number in numbers), Fraction(0))

    time = saved = Fraction(0)
    for name, mode_name, number in recomputed:
        available[name] -= number
        if number < 0 or available[name] < 0:
            raise ValueError(f"recomputed: found {number} layers {name}; allowed: those of the stage, each in one way")
        mode = types[name].mode(mode_name)
        time += number * mode.time
        saved += number * types[name].activation * (1 - mode.keeps)
    backward = total(lambda layer: layer.backward) + model.backward_overhead
    splits, own = model.splittable, model.parameters
    return StageCosts(
        forward=total(lambda layer: layer.forward) + model.forward_overhead,
        backward=backward + time,
        weight=total(lambda layer: layer.weight or Fraction(0)) if splits else None,
        fused=total(lambda layer: layer.full_backward) + model.backward_overhead + time,
        memory=total(lambda layer: layer.memory),
        activation=total(lambda layer: layer.activation) - saved,
        freed=total(lambda layer: layer.freed_by_backward) - saved if splits else Fraction(0),
        kept_for_later=total(lambda layer: layer.kept_for_later),
        recomputation=time,
        saved=saved,
        gather=total(lambda layer: layer.gather) + (own.gather.of.time if own.gather else 0),
        gathered=total(lambda layer: layer.gathered) + (own.gather.memory if own.gather else 0),
        reduce=total(lambda layer: layer.reduce) + (own.reduce.time if own.reduce else 0),
        step=total(lambda layer: layer.step) + (own.step or 0),
        forward_only=bool(layers) and all(layer.forward_only for layer in layers),
        block_saves=total(lambda layer: layer.saved_in_block) if model.overlaps else None,
    )
