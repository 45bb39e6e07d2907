"""The key `precision` of a plan file's section `model`: formats of products by part, and layers kept in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, create_model

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm
from pipesched.layers.derived.part_formats import formats_of_parts
from pipesched.layers.derived.precision import ALL_ALIKE, FORMATS, KEPT, MTP, PARTS, PRECISIONS, Formats
from pipesched.layers.derived.shape import Shape, Training

_PARTS_AS_KEYS: dict[str, Any] = {
    part: (
        Annotated[str, field_types.one_of(*FORMATS)] | None,
        Field(None, description=f"format of products: {what}"),
    )
    for part, what in PARTS.items()
}


class _Ends(Section):
    """Formats of the products of a model's parts that differ from `dtype`, and layers at both ends in 16 bits."""

    first_layers: field_types.Natural = Field(
        0, description="first layers whose products stay in 16 bits (--num-layers-at-start-in-bf16); default 0"
    )
    last_layers: field_types.Natural = Field(
        0, description="last layers whose products stay in 16 bits (--num-layers-at-end-in-bf16); default 0"
    )


PrecisionSection = create_model("PrecisionSection", __base__=_Ends, __doc__=_Ends.__doc__, **_PARTS_AS_KEYS)


class ModelKeys(Section):
    """The key `model.precision`."""

    precision: PrecisionSection | None = None  # type: ignore[valid-type]


def _given(form: PlanForm) -> Mapping[str, str]:
    """Return the formats that the section gives, by part."""
    section = form.model.precision
    named = {part: getattr(section, part, None) for part in PARTS}
    return {part: name for part, name in named.items() if name is not None}


def _model_mistakes(form: PlanForm) -> Iterator[str]:
    """Yield a line for each format that numbers of the model's `dtype` are not converted to, and for too many layers.

    Layers at both ends are so too where all products are in 32 bits, as these stay so.
    """
    model, place = form.model, "model.precision"
    if model.precision is None:
        return
    allowed = [name for name, own in PRECISIONS.items() if own.number == PRECISIONS[model.dtype].number]
    for part, name in _given(form).items():
        if name not in allowed:
            yield f"{place}.{part}: found {name} with dtype {model.dtype}; allowed: {', '.join(allowed)}"
    first, last = model.precision.first_layers, model.precision.last_layers
    for key, number in (("first_layers", first), ("last_layers", last)):
        if number and PRECISIONS[model.dtype].format.bits > KEPT.bits:
            yield f"{place}.{key}: found {number} with dtype {model.dtype}; allowed: 0, as all layers stay in 32 bits"
    if model.layers and first + last > model.layers:
        key, more = ("last_layers", " with first_layers" if first else "") if last else ("first_layers", "")
        yield f"{place}.{key}: found {first + last}{more}; allowed: up to the {model.layers} layers"


def _training(form: PlanForm) -> Mapping[str, Any]:
    section = form.model.precision
    if section is None:
        return {}
    parts = {part: FORMATS[name] for part, name in _given(form).items()}
    return {"formats": Formats(parts, section.first_layers, section.last_layers)}


def _shape_mistakes(form: PlanForm, shape: Shape, training: Training) -> Iterator[str]:
    """Yield a line for each format that no product of the model has."""
    if form.model.precision is None:
        return
    has, own = formats_of_parts(shape, replace(training, formats=ALL_ALIKE)), formats_of_parts(shape, training)
    for part, name in _given(form).items():
        place = f"model.precision.{part}: found"
        if part not in has:
            yield f"{place} in a model without it; allowed: {', '.join(one for one in PARTS if one in has)}"
        elif FORMATS[name] not in own[part]:
            others = [key for key in ("first_layers", "last_layers", MTP) if getattr(form.model.precision, key)]
            yield f"{place} {name}, but all its layers are those of {', '.join(others)}; allowed: without it"


def _notes(form: PlanForm) -> Iterator[str]:
    """Yield a note if the section leaves every product in the format that it would have without."""
    if form.model is None or form.model.precision is None or not form.model.precision.model_fields_set:
        return
    usual, formats = PRECISIONS[form.model.dtype].format, _training(form)["formats"]
    parts = any(format != ALL_ALIKE.of(part, usual) for part, format in formats.parts.items())
    if not formats.some_narrow(usual) or not (parts or formats.first or formats.last or MTP in formats.parts):
        yield f"model.precision: changes nothing: with dtype {form.model.dtype} all products have these formats anyway"


PLAN_FEATURES.register(
    PlanFeature(
        name="model.precision",
        sections={"model": ModelKeys},
        model_mistakes=_model_mistakes,
        training=_training,
        shape_mistakes=_shape_mistakes,
        notes=_notes,
    )
)
