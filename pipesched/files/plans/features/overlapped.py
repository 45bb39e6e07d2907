"""The key `overlapped` of a plan's layers: the time of a forward and a full backward run together as one block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Part, Refused, at, given
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, LayerEntry, PlanFeature, PlanForm, Rounding
from pipesched.files.plans.module_rules import ANY_MODULE
from pipesched.files.schema_errors import shown
from pipesched.layers.layer import LayerType


class LayerKeys(Section):
    """The key `overlapped` of a layer, whose passes may run in one block with those of others."""

    overlapped: field_types.Number | None = Field(
        None,
        description="a forward and a full backward of this layer, of two micro-batches, run together as one block; a "
        "block of two stages saves what the layers of the stage that saves less do",
    )


def _mistakes(place: str, entry: LayerEntry, _unit: str) -> Iterator[str]:
    if entry.overlapped is None or entry.forward is None or entry.backward is None:
        return
    whole = entry.backward + (entry.weight or 0) if entry.fused is None else entry.fused
    least, most = max(entry.forward, whole), entry.forward + whole
    if not least <= entry.overlapped <= most:
        yield (
            f"{place}.overlapped: found {shown(entry.overlapped)}; allowed: {shown(least)}, the longer of forward and "
            f"full backward, to {shown(most)}, the two in turn"
        )


def _layer(entry: LayerEntry, _form: PlanForm, rounding: Rounding) -> Mapping[str, Any]:
    if getattr(entry, "overlapped", None) is None:
        return {}
    forward, backward, weight = map(rounding.time, (entry.forward, entry.backward, entry.weight))
    whole = backward + weight if entry.fused is None else rounding.time(entry.fused)
    # Rounding must not make a block shorter than one of its passes.
    return {"overlapped": min(forward + whole, max(rounding.time(entry.overlapped), forward, whole))}


def _written(layer: LayerType) -> Mapping[str, Any]:
    return {} if layer.overlapped is None else {"overlapped": layer.overlapped}


def _has_overlapped(document: Mapping[str, Any]) -> bool:
    layers = as_list(document.get("layers")) or ()
    return any(isinstance(layer, Mapping) and layer.get("overlapped") is not None for layer in layers)


def _trains_in_part(document: Mapping[str, Any]) -> bool:
    layers = as_list(document.get("layers")) or ()
    return any(isinstance(layer, Mapping) and layer.get("frozen") is True for layer in layers)


_OWN = Part("layers.overlapped", "layers.overlapped", _has_overlapped)
_FROZEN = Part("layers.frozen", "a frozen layer", _trains_in_part)
_SENDING = Part("transfer.on", "transfer.on", lambda document: at(document, "transfer.on") is not None)
_EITHER = "one of the two"

PLAN_FEATURES.register(
    PlanFeature(
        name="overlapped",
        sections={"layers": LayerKeys},
        with_units={"layers.overlapped": QuantityKind.TIME},
        layer_mistakes=_mistakes,
        layer_times=lambda layer, _: iter((getattr(layer, "overlapped", None),)),
        layer=_layer,
        layer_written=_written,
        refused=(
            Refused(_OWN, _SENDING, _EITHER, "a block has one end"),
            Refused(_OWN, _FROZEN, _EITHER, "no full backward"),
            Refused(_OWN, given("parameters"), _EITHER, "nothing follows a block"),
            Refused(_OWN, ANY_MODULE, _EITHER, "no key"),
            Refused(_OWN, given("sequence_chunks"), _EITHER, "pieces differ"),
            Refused(_OWN, given("batch"), _EITHER, "no key"),
        ),
    )
)
