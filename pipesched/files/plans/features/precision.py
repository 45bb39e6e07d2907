"""The key `precision` of a plan file's section `model`: formats of products by part, and layers kept in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, create_model

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm
from pipesched.layers.derived.precision import FORMATS, MTP, PARTS, PRECISIONS, Formats

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
    """Yield a line for each mistake in the formats of a model's parts.

    Mistakes are formats that numbers of the model's `dtype` are not converted to, parts that the model does not have,
    and more layers than there are.
    """
    model, place = form.model, "model.precision"
    if model.precision is None:
        return
    allowed = [name for name, own in PRECISIONS.items() if own.number == PRECISIONS[model.dtype].number]
    absent = {*PARTS} - {*_parts(form)}
    for part, name in _given(form).items():
        if name not in allowed:
            yield f"{place}.{part}: found {name} with dtype {model.dtype}; allowed: {', '.join(allowed)}"
        elif part in absent:
            yield f"{place}.{part}: found in a model without it; allowed: {', '.join(_parts(form))}"
    first, last = model.precision.first_layers, model.precision.last_layers
    if model.layers and first + last > model.layers:
        key, more = ("last_layers", " with first_layers" if first else "") if last else ("first_layers", "")
        yield f"{place}.{key}: found {first + last}{more}; allowed: up to the {model.layers} layers"


def _parts(form: PlanForm) -> Iterator[str]:
    """Yield the names of the parts that a model has."""
    model = form.model
    experts = model.experts
    has = {
        "attention": True, "mixer": model.mixer is not None, "mixer_output": model.mixer is not None,
        "mlp": model.ffn is not None, "experts": experts is not None, "router": experts is not None,
        "shared_experts": experts is not None and experts.shared > 0,
        "latents": experts is not None and experts.latent is not None, MTP: model.mtp_layers > 0, "head": True,
    }  # fmt: skip
    return (part for part in PARTS if has[part])


def _training(form: PlanForm) -> Mapping[str, Any]:
    section = form.model.precision
    if section is None:
        return {}
    parts = {part: FORMATS[name] for part, name in _given(form).items()}
    return {"formats": Formats(parts, section.first_layers, section.last_layers)}


PLAN_FEATURES.register(
    PlanFeature(
        name="model.precision", sections={"model": ModelKeys}, model_mistakes=_model_mistakes, training=_training
    )
)
