"""Times and memory of a partition's stages as linear expressions of its variables: sums over their layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import floor
from typing import Any, NamedTuple, TypeAlias

from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model
from pipesched.layers.plan_problem import PlanProblem

# A number or a linear expression of OR-Tools, whose own types do not cover their sums.
Linear: TypeAlias = Any
# A stage by its position in its chain, from 0: stages of all chains at one position have the same layers.
ChainPosition: TypeAlias = int


@dataclass(frozen=True)
class StageTerms:
    """Times and memory of one stage, linear in the variables of a partition.

    Times are in ticks, memory in steps of the partition model. `forward`, `backward` (B), `weight` (W) and `full` (BW)
    are the times of its passes. `gradient` is the least time of a pass that sends the gradient on: of B where backwards
    may be split, else of BW. `work` is the least that the passes of a micro-batch add to the work of their device,
    `least_backward` the part of its backward, and `busy` the least that F and the gradient add. Blocks of two passes
    save at most `block_saves`.

    `memory` is that of the layers, `activation` that of a micro-batch, `memory_until_weight` what is left of it from B
    to W, `kept_for_later` what a piece keeps for later pieces of its micro-batch (0 without pieces). For the stage's
    parameters, `gather`, `reduce` (one bucket) and `step` are times, `gathered` is their memory, and
    `gathered_to_backward` the least of it that stays from a stage's forward to its backward.
    """

    forward: Linear
    backward: Linear
    weight: Linear
    gradient: Linear
    full: Linear
    least_backward: Linear
    work: Linear
    busy: Linear
    block_saves: Linear
    memory: Linear
    activation: Linear
    memory_until_weight: Linear
    kept_for_later: Linear = 0
    gather: Linear = 0
    gathered: Linear = 0
    gathered_to_backward: Linear = 0
    reduce: Linear = 0
    step: Linear = 0

    @classmethod
    def of_all(cls, pieces: Sequence[StageTerms]) -> StageTerms:
        """Return the terms of a stage for a whole micro-batch, summed over its pieces; those of parameters count once.

        The activation includes the memory that pieces keep for later ones until the first backward.
        """
        found = {one.name: sum(getattr(piece, one.name) for piece in pieces) for one in fields(cls)}
        names = ("memory", "gather", "gathered", "gathered_to_backward", "reduce", "step")
        once = {name: getattr(pieces[0], name) for name in names}
        return cls(**found | once | {"activation": found["activation"] + found["kept_for_later"]})


class StageLayers(NamedTuple):
    """The layers of a stage (`counts`, by run), those recomputed by (layer type, mode), the device's slowness.

    `last`: True for the last stage of the chain. The device takes `slowness` times the times of the layers.
    """

    counts: Sequence[Linear]
    recomputed: Mapping[tuple[str, str], Linear]
    slowness: Fraction
    last: bool

    def terms(self, plan: PlanProblem, model: Model, step: Fraction, pieces: int) -> StageTerms:
        """Return the times and memory of the stage for a model that is one of `pieces` pieces of a micro-batch.

        Times are in ticks of the plan problem, on the stage's device; memory is in units of `step`. Both are rounded
        down by layer.
        """
        # One tick of the device in the time unit of the layers.
        splits, tick = model.splittable, plan.tick / self.slowness

        def times(of: Callable[[LayerType], Fraction]) -> Linear:
            return self._total(model, of, tick)

        def memory(of: Callable[[LayerType], Fraction]) -> Linear:
            return self._total(model, of, step)

        kinds = {kind.name: kind for kind in model.kinds}
        recomputed = self.recomputed.items()
        again = sum(number * _whole(kinds[name].mode(mode).time, tick) for (name, mode), number in recomputed)
        more_forward = _whole(model.forward_overhead, tick)
        more_backward = _whole(model.backward_overhead, tick) + again
        forward = times(lambda layer: layer.forward) + more_forward
        full = times(lambda layer: layer.full_backward) + more_backward
        whole = plan.whole_last and self.last  # B is the whole backward
        shortest = times(lambda layer: min(layer.backward, layer.full_backward)) + more_backward
        saves = times(lambda layer: layer.saved_in_block)
        least_backward = full - saves if whole else times(lambda layer: layer.least_backward) + more_backward
        own = times(lambda layer: layer.least_gradient) + more_backward if splits and not whole else full - saves
        # The saving is rounded so that the memory that is kept is rounded down, too.
        saved = sum(
            number * (floor(kinds[name].activation / step) - floor(_kept(kinds[name], mode) / step))
            for (name, mode), number in self.recomputed.items()
        )
        return StageTerms(
            forward=forward,
            backward=full if whole else times(lambda layer: layer.backward) + more_backward,
            weight=0 if whole else times(lambda layer: layer.weight or Fraction(0)),
            gradient=shortest if splits and not whole else full,
            full=full,
            least_backward=least_backward,
            work=forward + least_backward,
            busy=forward + own,
            block_saves=saves,
            memory=memory(lambda layer: layer.memory),
            activation=memory(lambda layer: layer.activation) - saved,
            memory_until_weight=memory(lambda layer: layer.activation - layer.freed_by_backward),
            kept_for_later=memory(lambda layer: layer.kept_for_later) if pieces > 1 else 0,
            **self._of_parameters(model, plan.tick, step),
        )

    def _of_parameters(self, model: Model, tick: Fraction, memory: Fraction) -> dict[str, Linear]:
        """Return the terms for the stage's parameters, by field of `StageTerms`, as far as the model has such work.

        Only the optimizer step takes longer on a slow device.
        """
        found: dict[str, Linear] = {}
        gather, reduce, step = model.parameters
        slower = tick / self.slowness
        if gather is not None:
            found["gather"] = self._total(model, lambda one: one.gather, tick) + _whole(gather.of.time, tick)
            gathered = self._total(model, lambda one: one.gathered, memory)
            found["gathered"] = gathered + _whole(gather.memory, memory)
            # Stages with frozen layers only, which no gradient reaches, may release their parameters after their last
            # forward.
            found["gathered_to_backward"] = found["gathered"]
            if any(one.forward_only for one in model.sequence):
                trained = self._total(model, lambda one: Fraction(0) if one.forward_only else one.gathered, memory)
                found["gathered_to_backward"] = trained
        if reduce is not None:
            bucket = tick * reduce.parts
            found["reduce"] = self._total(model, lambda one: one.reduce, bucket) + _whole(reduce.time, bucket)
        if step is not None:
            found["step"] = self._total(model, lambda one: one.step, slower) + _whole(step, slower)
        return found

    def _total(self, model: Model, of: Callable[[LayerType], Fraction], step: Fraction) -> Linear:
        runs_and_counts = zip(model.layers, self.counts, strict=True)
        return sum(number * _whole(of(run), step) for run, number in runs_and_counts)


def _kept(layer: LayerType, mode: str) -> Fraction:
    return layer.activation * layer.mode(mode).keeps


def _whole(amount: Fraction, step: Fraction) -> int:
    return floor(amount / step)
