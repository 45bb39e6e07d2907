"""Layers of a plan file that gives a model's shape and the hardware in place of `layers`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pydantic import ValidationError

from pipesched.files.batch_sizes import COUNT
from pipesched.files.fields.section import WrongPaths
from pipesched.files.limits import LARGEST
from pipesched.files.plans.derived_layers import derived_from, model_mistakes, shape_mistakes
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.plans.schema import LayerEntry, LayerKeys, PlanFile, RecomputeEntry
from pipesched.files.schema_errors import shown
from pipesched.layers.derived.derive import MEMORY_UNIT, TIME_UNIT
from pipesched.layers.layer import LayerType
from pipesched.layers.training_step import TrainingStep


def required_of(document: object) -> tuple[str, ...]:
    """Return the keys that a plan document must have, given its other keys: `devices`, `microbatches` and `layers`.

    Left out are `devices` if it has `cluster`, `layers` if it has `model`, and `microbatches` if it has both `model`
    and `batch`.
    """
    instead = {"layers": "model", "devices": "cluster"}
    given = document if isinstance(document, dict) else {}
    counted = {COUNT} if given.get("model") is not None and given.get("batch") is not None else set()
    return tuple(key for key in PlanFile.required if given.get(instead.get(key, "")) is None and key not in counted)


class Filled(NamedTuple):
    """A plan form with layers, capacity and transfer filled in by derivation; the form itself if there is none.

    None is derived if the file lists layers or has a mistake: `step`, the training step around the pipeline, is then
    None, and `assumptions`, lines on the values assumed, are empty.
    """

    form: PlanFile
    assumptions: tuple[str, ...] = ()
    step: TrainingStep | None = None


def with_derived_layers(form: PlanFile, wrong: WrongPaths) -> tuple[Filled, list[str]]:
    """Return the form with layers derived from its model's shape, and the mistakes of the sections for that.

    The form is unchanged where it has no `model`, or there are mistakes.
    """
    if form.model is None:
        hardware = form.hardware is not None and not any(path.split(".")[0] == "model" for path in wrong)
        return Filled(form), ["hardware: found without model; allowed: with model"] if hardware else []
    if any(path.split(".")[0] in ("model", "hardware") for path in wrong):
        return Filled(form), []
    mistakes = [*model_mistakes(form.model, form.hardware), *_twice(form)]
    mistakes += [line for feature in PLAN_FEATURES for line in feature.model_mistakes(form)]
    mistakes = mistakes or shape_mistakes(form)
    if mistakes or form.hardware is None:
        return Filled(form), mistakes
    derived, step = derived_from(form)
    layers = derived.layers
    for feature in PLAN_FEATURES:
        layers, step, mistakes = feature.derived(form, layers, step)
        if mistakes:
            return Filled(form), mistakes
    try:
        filled = {
            "layers": [entry_of(layer) for layer in layers],
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


def entry_of(layer: LayerType) -> LayerEntry:
    """Return a layer type as an entry of the key `layers`."""
    return LayerEntry(
        recompute=[RecomputeEntry(**mode._asdict()) for mode in layer.recompute] or None,
        **{key: getattr(layer, key) for key in LayerKeys.model_fields if key != "recompute"},
        **{key: value for feature in PLAN_FEATURES for key, value in feature.layer_written(layer).items()},
    )


def _twice(form: PlanFile) -> Iterator[str]:
    """Yield mistakes where `model` or `hardware` and another key state the same thing."""
    if form.layers is not None:
        yield "layers: found with model; allowed: one of the two"
    if form.memory is not None:
        yield "memory: found with model; allowed: hardware.memory and hardware.reserved"
    if form.time_unit not in ("", TIME_UNIT):
        yield f"time_unit: found {form.time_unit!r} with model; allowed: {TIME_UNIT}"
