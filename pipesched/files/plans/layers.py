"""Layers of a plan file that gives a model's shape and the hardware instead of `layers`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from pydantic import ValidationError

from pipesched.files.batch_sizes import COUNT
from pipesched.files.limits import LARGEST
from pipesched.files.plans.derived_layers import derived_from, model_mistakes
from pipesched.files.plans.model_schema import ModelSection
from pipesched.files.plans.schema import LayerEntry, PlanFile, PlanMemory, RecomputeEntry
from pipesched.files.schema_errors import shown
from pipesched.layers.derived.derive import MEMORY_UNIT, TIME_UNIT
from pipesched.layers.layer import LayerType
from pipesched.layers.training_step import TrainingStep


def required_of(document: object) -> tuple[str, ...]:
    """Return the required keys of a plan document: `layers`, unless it has `model`; `devices`, unless it has `cluster`.

    `microbatches` is required too, unless a model has a batch, which says how many there are.
    """
    instead = {"layers": "model", "devices": "cluster"}
    given = document if isinstance(document, dict) else {}
    counted = {COUNT} if given.get("model") is not None and given.get("batch") is not None else set()
    return tuple(key for key in PlanFile.required if given.get(instead.get(key, "")) is None and key not in counted)


class Filled(NamedTuple):
    """A plan form completed by derivation: layers, capacity and transfer filled in.

    `assumptions` are lines on the values assumed; `step` is what surrounds the layers in a training step.
    """

    form: PlanFile
    assumptions: tuple[str, ...] = ()
    step: TrainingStep | None = None


def with_derived_layers(form: PlanFile, wrong: frozenset[str]) -> tuple[Filled, list[str]]:
    """Return the form with layers derived from its model's shape, and the mistakes of the sections for it."""
    if form.model is None:
        hardware = form.hardware is not None and not any(path.split(".")[0] == "model" for path in wrong)
        return Filled(form), ["hardware: found without model; allowed: with model"] if hardware else []
    if any(path.split(".")[0] in ("model", "hardware") for path in wrong):
        return Filled(form), []
    mistakes = [*model_mistakes(form.model, form.hardware), *_twice(form)]
    if mistakes or form.hardware is None:
        return Filled(form), mistakes
    scheduled = form.parameters is not None and form.parameters.reduce is not None
    derived, step = derived_from(form.model, form.hardware, hide_exchange=not scheduled)
    layers = derived.layers
    names = [layer.name for layer in layers]
    if unknown := [name for name in form.model.frozen or () if name not in names]:
        allowed = ", ".join(dict.fromkeys(names))
        return Filled(form), [f"model.frozen: found {unknown[0]}; allowed: the model's layers, {allowed}"]
    if form.parameters and form.parameters.step is not None:
        layers = tuple(replace(one, step=step.optimizer.get(one.name, Fraction(0))) for one in layers)
        step = replace(step, optimizer={})
    if scheduled:
        # It is then a part of the iteration, and comes on top no more.
        layers = tuple(replace(one, reduce=step.reduction.get(one.name, Fraction(0))) for one in layers)
        step = replace(step, reduction={})
    try:
        filled = {
            "layers": [
                entry_of(layer).model_copy(update={"frozen": _is_frozen(form.model, layer.name)}) for layer in layers
            ],
            "memory": PlanMemory(unit=MEMORY_UNIT, capacity=derived.capacity),
            "time_unit": TIME_UNIT,
            "transfer": derived.transfer if form.transfer is None else form.transfer,
        }
    except ValidationError as error:
        number = shown(float(error.errors()[0]["input"]))
        return Filled(form), [
            f"model: found sizes and rates that make {number} of one layer; allowed: 0 to {LARGEST:.0e}"
        ]
    return Filled(form.model_copy(update=filled), derived.assumptions, step), []


def _is_frozen(model: ModelSection, name: str | None) -> bool:
    """Return True if nothing of a layer trains; with LoRA adapters embedding and head do not train either."""
    return name in (model.frozen or ()) or (model.lora is not None and name in ("embedding", "head"))


def entry_of(layer: LayerType) -> LayerEntry:
    """Return a layer type as an entry of the key `layers`."""
    return LayerEntry(
        recompute=[RecomputeEntry(**way._asdict()) for way in layer.recompute] or None,
        frozen=layer.forward_only,
        **{key: getattr(layer, key) for key in LayerEntry.model_fields if key not in ("recompute", "frozen")},
    )


def _twice(form: PlanFile) -> Iterator[str]:
    """Yield mistakes where `model` or `hardware` and another key state the same thing."""
    if form.layers is not None:
        yield "layers: found with model; allowed: one of the two"
    if form.memory is not None:
        yield "memory: found with model; allowed: hardware.memory and hardware.reserved"
    if form.time_unit not in ("", TIME_UNIT):
        yield f"time_unit: found {form.time_unit!r} with model; allowed: {TIME_UNIT}"
    if form.parameters and form.parameters.gather:
        yield "parameters.gather: found with model; allowed: with layers, which say what gathering takes"
    if form.parameters and form.parameters.reduce and form.hardware and form.hardware.data_bandwidth is None:
        yield "parameters.reduce: found with model without hardware.data_bandwidth; allowed: with it"
