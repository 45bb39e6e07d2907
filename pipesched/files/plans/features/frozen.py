"""Frozen layers and adapters (LoRA) of a plan file: the costs that remain, and the features that they exclude.

In a file `frozen` is any layer whose weights do not train. `_with_frozen_layers` leaves that mark on layers before all
that train only, which `LayerType.forward_only` then has; the others keep the costs of a B for their input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list, field, finite_number, list_of
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Part, Refused, of_value
from pipesched.files.fields.together import at as value_at
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    LayerEntry,
    Layers,
    PlanFeature,
    PlanForm,
    Reading,
    Rounding,
)
from pipesched.files.rounding import short
from pipesched.layers.derived.shape import LORA_MODULES, Lora, kind_name
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.training_step import TrainingStep

_ZERO = Fraction(0)
_MODULES_OF_LORA = field(
    f"a list of {', '.join(LORA_MODULES)}",
    list_of(lambda value: value if value in LORA_MODULES else None, f"one of {', '.join(LORA_MODULES)}"),
    {
        "type": "array",
        "items": {"type": "string", "enum": [*LORA_MODULES]},
        "minItems": 1,
        "uniqueItems": True,
    },
)


class LoraSection(Section):
    """Adapters that train alone: low-rank products added to those of every layer that is not frozen (LoRA)."""

    required = ("rank",)

    rank: field_types.Count | None = Field(None, description="numbers between the two products of an adapter")
    modules: Annotated[list[str], _MODULES_OF_LORA] | None = Field(
        None, description="products that have adapters, by Megatron-Core's names; default all of them"
    )


class ModelKeys(Section):
    """The keys `model.frozen` and `model.lora`: layers of a model's shape whose weights do not train."""

    frozen: field_types.Names | None = Field(
        None, description="layers by name (embedding, layer, dense, moe, mtp, head) whose weights are not trained"
    )
    lora: LoraSection | None = Field(
        None, description="adapters train alone: the weights of all layers are frozen, those of embedding and head too"
    )


class CostKeys(Section):
    """The key `frozen` of a layer, whose weights do not train."""

    frozen: field_types.YesOrNo = Field(
        False,
        description="its weights are not trained: no W, no reduce, no step; and where all layers before it are frozen "
        "too, no backward and no activation held",
    )


def _model_mistakes(form: PlanForm) -> Iterator[str]:
    yield from () if form.model.lora is None else form.model.lora.missing("model.lora")


def _training(form: PlanForm) -> Mapping[str, Any]:
    own = form.model.lora
    modules = tuple(name for name in LORA_MODULES if own is None or own.modules is None or name in own.modules)
    lora = None if own is None or own.rank is None else Lora(own.rank, modules)
    return {"frozen": frozenset(form.model.frozen or ()), "lora": lora}


def _derived(form: PlanForm, layers: Layers, step: TrainingStep) -> tuple[Layers, TrainingStep, list[str]]:
    """Return the derived layers with those marked that are frozen by name, the step unchanged, and mistakes.

    The mark is that of a file's `frozen` here: `_with_frozen_layers` later takes it from layers after one that trains.
    With adapters embedding and head are frozen, too.
    """
    model, names = form.model, [kind_name(layer.name) for layer in layers]
    unknown = [name for name in model.frozen or () if name not in names]
    if unknown:
        allowed = ", ".join(dict.fromkeys(names))
        return layers, step, [f"model.frozen: found {unknown[0]}; allowed: the model's layers, {allowed}"]
    frozen = {*(model.frozen or ()), *(("embedding", "head") if model.lora is not None else ())}
    found = tuple(replace(layer, forward_only=kind_name(layer.name) in frozen) for layer in layers)
    trains = form.encoder is not None and not form.encoder.frozen
    return found, step, [] if trains else _parted(found, model.lora is not None)


def _parted(layers: Layers, adapted: bool) -> list[str]:
    """Return a mistake if derived layers of one name are frozen both before and after the first layer that trains.

    Else an empty list. A file can freeze all layers of a name or none, so the line names the keys that can be changed.
    `adapted`: adapters freeze the embedding in any case.
    """
    first = next((at for at, layer in enumerate(layers) if not layer.forward_only), len(layers))
    before = {layer.name for layer in layers[:first]}
    again = [at for at, layer in enumerate(layers) if at > first and layer.forward_only and layer.name in before]
    if not again:
        return []
    name = layers[again[0]].name
    last = max(at for at in again if layers[at].name == name)
    between = ", ".join(dict.fromkeys(kind_name(one.name) for one in layers[:last] if not one.forward_only))
    own = kind_name(name)
    found = f"found {own}, of layers before {layers[first].name}, the first that trains, and after it"
    without = own if adapted else f"embedding or {own}"
    return [f"model.frozen: {found}; allowed: without {without}, or with {between}, or layers by hand (docs/layers.md)"]


def _with_frozen_layers(form: PlanForm) -> Any:
    """Return the form with the costs of frozen layers: no W, and no backward before the first layer that trains.

    From here on the mark `frozen` says that a layer is before the first one that trains (`LayerType.forward_only`).
    """
    before = _before_training(form)
    layers = [_without_backward(layer) if at < before else _frozen(layer) for at, layer in enumerate(form.layers or ())]
    found = form.model_copy(update={"layers": layers})
    if form.encoder is not None and form.encoder.frozen:
        own = _without_backward(form.encoder.as_layer)
        costs = {key: getattr(own, key) for key in type(form.encoder).model_fields if hasattr(own, key)}
        found = found.model_copy(update={"encoder": form.encoder.model_copy(update=costs)})
    return found


def _frozen_names(form: PlanForm) -> tuple[str, ...]:
    """Return the names of frozen layers, each once, in the order of the layers."""
    return tuple(dict.fromkeys(layer.name for layer in form.layers or () if layer.frozen and layer.name))


def _adapter_rank(form: PlanForm) -> int | None:
    """Return the rank of LoRA adapters; None without adapters."""
    return None if form.model is None or form.model.lora is None else form.model.lora.rank


def _notes(form: PlanForm) -> Iterator[str]:
    """Yield a note for each frozen layer after a trained one for which the file gives one time for B and W together.

    All of that time is taken for B, since a frozen layer has no W.
    """
    yield from dict.fromkeys(
        f"layers: {layer.name}: frozen, and its backward, {short(layer.backward)}, is not split from a W; it is taken "
        "as that for its input alone"
        for layer in (form.layers or ())[_before_training(form) :]
        if layer.frozen and layer.weight is None and layer.backward
    )


def _mistakes(form: PlanForm, _choices: Choices, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes of frozen layers.

    A name may not stand for layers both before and after the first one that trains, since their costs differ. A frozen
    layer before it keeps no keys and values for later pieces, since no backward would free them.
    """
    if any(path.split(".")[0] in ("layers", "encoder") for path in wrong):
        return
    before, layers = _before_training(form), form.layers or []
    first = {layer.name: at for at, layer in reversed([*enumerate(layers[:before])])}
    for at, layer in enumerate(layers[before:], before):
        if layer.frozen and layer.name in first:
            yield (
                f"layers[{at}].name: found {layer.name!r}, frozen behind a layer that trains, as is layers"
                f"[{first[layer.name]}] before all of these; allowed: another name, since only this one has a backward"
            )
    if form.sequence_chunks is not None:
        yield from (
            f"layers[{at}].kept_for_later: found with sequence_chunks on a frozen layer before all that train; "
            "allowed: 0, since no backward gives keys and values back"
            for at, layer in enumerate(layers[:before])
            if layer.kept_for_later
        )


def _before_training(form: PlanForm) -> int:
    """Return the number of layer entries before the first one that trains.

    0 if an encoder before all of them trains.
    """
    layers = form.layers or []
    if form.encoder is not None and not form.encoder.frozen:
        return 0
    return next((at for at, layer in enumerate(layers) if not layer.frozen), len(layers))


def _untrained(entry: LayerEntry) -> dict[str, object]:
    """Return the changes to a layer's costs if its weights do not train: no W, no reduction, no optimizer step."""
    return {"weight": None if entry.weight is None else _ZERO, "fused": None, "reduce": None, "step": None}


def _without_backward(entry: LayerEntry) -> Any:
    """Return the entry of a layer before all that train: its backward takes no time, and no memory is kept for it."""
    memory = dict.fromkeys(("activation", "freed_by_backward", "kept_for_later", "recompute"))
    return entry.model_copy(update=_untrained(entry) | memory | {"backward": _ZERO, "attention_backward": _ZERO})


def _frozen(entry: LayerEntry) -> Any:
    """Return the entry of a layer that is not before all that train: if it is frozen, only B is left.

    B then frees all of the activation.
    """
    if not entry.frozen:
        return entry
    own: dict[str, object] = _untrained(entry) | {"frozen": False}
    if entry.weight is not None and entry.backward is not None:
        own["freed_by_backward"] = max(entry.activation or _ZERO, entry.freed_by_backward or _ZERO)
        share = entry.attention if entry.attention_backward is None else entry.attention_backward
        # Of the backward that is left the same attention is a larger share.
        own["attention_backward"] = share * (entry.backward + entry.weight) / entry.backward if share else share
    return entry.model_copy(update=own)


def _layer(entry: LayerEntry, _form: PlanForm, _rounding: Rounding) -> Mapping[str, Any]:
    return {"forward_only": entry.frozen}


def _layer_written(layer: LayerType) -> Mapping[str, Any]:
    return {"frozen": True} if layer.forward_only else {}


def _plan(plan: PlanProblem, _: PlanForm, reading: Reading) -> PlanProblem:
    return replace(plan, frozen=_frozen_names(reading.file), adapter_rank=_adapter_rank(reading.file))


def _settings_note(plan: PlanProblem) -> str:
    """Return a note if weights do not train, since no runtime's settings freeze layers or add adapters.

    Else empty text.
    """
    frozen = ", ".join(plan.frozen)
    if not frozen and plan.adapter_rank is None:
        return ""
    if plan.adapter_rank is None:
        return f"the plan's layers {frozen} are frozen; these settings do not freeze them: the job must"
    none = f", in all layers but {frozen}" if frozen else ""
    return (
        f"in the plan only adapters of rank {plan.adapter_rank} train{none}; these settings neither add them nor "
        "freeze the weights: the job must"
    )


def _runs_forwards_alone(document: Mapping[str, Any]) -> bool:
    """Return True if the first layers are frozen and no encoder before them trains, so that they have no backward."""
    encoder = document.get("encoder")
    if isinstance(encoder, Mapping):
        return encoder.get("frozen") is True
    first, names = (as_list(document.get("layers")) or [None])[0], as_list(value_at(document, "model.frozen")) or ()
    of_model = "embedding" in names or value_at(document, "model.lora") is not None
    return (isinstance(first, Mapping) and first.get("frozen") is True) or of_model


def _above_zero(path: str) -> Part:
    return Part(path, path, lambda document: (finite_number(value_at(document, path)) or 0) > 0)


_FROZEN = Part("layers.frozen", "frozen layers before all that train", _runs_forwards_alone)
_OVERLAPS = Part("overlap_next", "overlap_next", lambda document: document.get("overlap_next") is True)
_EMPTY = Part("empty_stages", "empty_stages", lambda document: document.get("empty_stages") is True)
_SPANS = "frozen passes end a span when gradients return"
_NONE_THERE = "stages of frozen layers have none"

PLAN_FEATURES.register(
    PlanFeature(
        name="layers.frozen",
        sections={"costs": CostKeys, "model": ModelKeys},
        refused=(
            Refused(of_value("objective", "span"), _FROZEN, "makespan", _SPANS),
            Refused(_OVERLAPS, _FROZEN, "one of the two", _SPANS),
            Refused(_EMPTY, _FROZEN, "false", "empty ones change which stages these are"),
            *(
                Refused(_above_zero(path), _FROZEN, "0", _NONE_THERE)
                for path in ("stage_overhead.backward", "batch.overhead.backward", "parameters.reduce.time",
                             "parameters.step.time")
            ),
        ),
        model_mistakes=_model_mistakes,
        training=_training,
        derived=_derived,
        mistakes=_mistakes,
        costs=_with_frozen_layers,
        notes=_notes,
        layer=_layer,
        plan=_plan,
        layer_written=_layer_written,
        settings_note=_settings_note,
    )
)  # fmt: skip
