"""Units of a plan file's numbers: the tick of all times and the step of all amounts of memory."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.plans.checks import choices_of
from pipesched.files.plans.parameters import buckets_of
from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.rounding import step_of
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.pieces import ends_of, exact_numbers


def every_layer(form: PlanFile) -> list[LayerEntry]:
    """Return the layer entries of the model, then the encoder's."""
    return [*(form.layers or ()), *([form.encoder.as_layer] if form.encoder else ())]


def tick_of(form: PlanFile, others: list[Fraction]) -> tuple[Fraction, bool]:
    """Return the tick of all times of the file and of `others`, and True if times must be rounded to it."""
    numbers, total = [*others], sum(others, Fraction(0)) * (form.devices or 1) * 4
    for layer in every_layer(form):
        once = (layer.gather, layer.reduce and layer.reduce / buckets_of(form.parameters), layer.step)
        own = [x for x in (layer.forward, layer.backward, layer.weight, layer.fused, *once) if x is not None]
        own += [way.time for way in layer.recompute or () if way.time is not None]
        numbers += own
        total += layer.count * sum(own, Fraction(0))
    numbers += [number for layer, ends in _with_ends(form) for number in exact_numbers(layer, ends)]
    return step_of(numbers, total * (form.microbatches or 1))


def _with_ends(form: PlanFile) -> Iterator[tuple[LayerType, tuple[Fraction, ...]]]:
    """Yield each layer with the ends of the pieces of a sequence, for every allowed cut into pieces."""
    ways = {(choice.pieces, choice.lengths) for choice in choices_of(form) if choice.pieces > 1}
    layers = tuple(_unrounded(layer) for layer in form.layers or ())
    every = [ends_of(Model(layers), *way) for way in ways]
    return ((layer, ends) for layer in layers for ends in every)


def _unrounded(entry: LayerEntry) -> LayerType:
    assert entry.forward is not None and entry.backward is not None
    attention, backward, zero = entry.attention, entry.attention_backward, Fraction(0)
    return LayerType(
        "",
        entry.forward,
        entry.backward,
        entry.count,
        entry.weight,
        entry.fused,
        activation=entry.activation or zero,
        recompute=tuple(RecomputeMode("", way.time or zero, way.keeps or zero) for way in entry.recompute or ()),
        attention=attention,
        attention_backward=attention if backward is None else backward,
        kept_for_later=entry.kept_for_later or zero,
    )


def memory_step_of(form: PlanFile, capacity: list[Fraction] | None) -> tuple[Fraction, bool]:
    """Return the unit that all amounts of memory are multiples of, and True if they must be rounded to it."""
    zero, layers = Fraction(0), every_layer(form)
    held = [
        (
            layer.count,
            (layer.activation or zero, layer.freed_by_backward or zero, layer.gathered or zero, *_kept(layer)),
        )
        for layer in layers
    ]
    numbers = [number for _, own in held for number in own]
    numbers += [end * amount for layer, ends in _with_ends(form) for amount in _amounts(layer) for end in ends]
    total = (form.microbatches or 1) * sum((count * sum(own, Fraction(0)) for count, own in held), Fraction(0))
    also = [*(layer.memory or zero for layer in layers), *(capacity or ())]
    also += [form.parameters.gather.memory or zero] if form.parameters and form.parameters.gather else []
    return step_of(numbers, total + max(capacity or [zero]), also=also)


def _amounts(layer: LayerType) -> list[Fraction]:
    """Return the amounts of memory of a layer of which a piece of a sequence takes a share."""
    return [layer.activation, layer.kept_for_later, *(layer.activation * way.keeps for way in layer.recompute)]


def _kept(layer: LayerEntry) -> list[Fraction]:
    return [(layer.activation or 0) * way.keeps for way in layer.recompute or () if way.keeps is not None]
