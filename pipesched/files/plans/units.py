"""The units of which a plan file's numbers become multiples: the tick of all times and the step of all memory."""

from __future__ import annotations

from fractions import Fraction

from pipesched.files.plans.checks import choices_of
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.rounding import Step, step_of

# CP-SAT's presolve was seen to lose partitions of models whose sums of times reach 5 * 10**13 steps.
MOST_STEPS_OF_TIMES = 2**40


def every_layer(form: PlanFile) -> list[LayerEntry]:
    """Return the layer entries of the model, then those that features add, such as an encoder."""
    return [*(form.layers or ()), *(entry for feature in PLAN_FEATURES for _, entry in feature.more_layers(form))]


def tick_of(form: PlanFile, lags: list[Fraction]) -> Step:
    """Return the tick of which all times of the file become multiples; `lags` are its times of transfers.

    Its size is in the file's unit. All passes of all layers together take at most `MOST_STEPS_OF_TIMES` ticks.
    """
    others = [*lags, *(time for feature in PLAN_FEATURES for time in feature.times(form))]
    numbers, total = [*others], sum(others, Fraction(0)) * (form.devices or 1) * 4
    for layer in every_layer(form):
        more = [time for feature in PLAN_FEATURES for time in feature.layer_times(layer, form)]
        own = [x for x in (layer.forward, layer.backward, layer.weight, layer.fused, *more) if x is not None]
        own += [mode.time for mode in layer.recompute or () if mode.time is not None]
        numbers += own
        total += layer.count * sum(own, Fraction(0))
    choices = choices_of(form)
    numbers += [time for feature in PLAN_FEATURES for time in feature.parts(form, choices)[0]]
    return step_of(numbers, total * (form.microbatches or 1), most_steps=MOST_STEPS_OF_TIMES)


def memory_step_of(form: PlanFile, capacity: list[Fraction] | None) -> Step:
    """Return the step of which all amounts of memory, also the capacities of devices, become multiples.

    `capacity` is by device, in the file's unit; None without a limit.
    """
    zero, layers, choices = Fraction(0), every_layer(form), choices_of(form)
    amounts = [(layer.count, [amount or zero for amount in _amounts(layer)]) for layer in layers]
    numbers = [number for _, own in amounts for number in own]
    numbers += [amount for feature in PLAN_FEATURES for amount in feature.parts(form, choices)[1]]
    total = (form.microbatches or 1) * sum((count * sum(own, zero) for count, own in amounts), zero)
    also = [*(layer.memory or zero for layer in layers), *(capacity or ())]
    also += [amount for feature in PLAN_FEATURES for amount in feature.amounts(form)]
    return step_of(numbers, total, max(capacity or [zero]), also=also)


def _amounts(layer: LayerEntry) -> list[Fraction | None]:
    """Return the amounts of memory of a layer that a micro-batch takes or keeps; None for those that are not given.

    In the file's unit of memory.
    """
    kept = [(layer.activation or 0) * mode.keeps for mode in layer.recompute or () if mode.keeps is not None]
    more = [amount for feature in PLAN_FEATURES for amount in feature.layer_amounts(layer)]
    return [layer.activation, layer.freed_by_backward, *more, *kept]
