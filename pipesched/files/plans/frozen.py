"""Frozen layers of a plan file: what is left of their costs, and what they do not go with."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.rounding import short

_ZERO = Fraction(0)


def with_frozen_layers(form: PlanFile) -> PlanFile:
    """The file with the costs that frozen layers have; only those before all that trains still say that they are."""
    before = _before_training(form)
    layers = [_forward_only(layer) if at < before else _frozen(layer) for at, layer in enumerate(form.layers or ())]
    found = form.model_copy(update={"layers": layers})
    if form.encoder is not None and form.encoder.frozen:
        own = _forward_only(form.encoder.as_layer)
        costs = {key: getattr(own, key) for key in type(form.encoder).model_fields if hasattr(own, key)}
        found = found.model_copy(update={"encoder": form.encoder.model_copy(update=costs)})
    return found


def frozen_names(form: PlanFile) -> tuple[str, ...]:
    """Names of the layers of which nothing trains, in their order."""
    return tuple(dict.fromkeys(layer.name for layer in form.layers or () if layer.frozen and layer.name))


def adapter_rank(form: PlanFile) -> int | None:
    """Rank of the adapters that alone train; None where weights do."""
    return None if form.model is None or form.model.lora is None else form.model.lora.rank


def notes_on_frozen(form: PlanFile) -> list[str]:
    """Notes on backwards that are not split, and taken for that of the input."""
    found = dict.fromkeys(
        f"layers: {layer.name}: frozen, and its backward, {short(layer.backward)}, is not split from a W; it is taken "
        "as that for its input alone"
        for layer in (form.layers or ())[_before_training(form) :]
        if layer.frozen and layer.weight is None and layer.backward
    )
    return [*found]


def frozen_mistakes(form: PlanFile) -> Iterator[str]:
    """Layers of one name must cost the same, and no keys and values wait for a backward that does not run."""
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


def _before_training(form: PlanFile) -> int:
    """Number of entries before the first one that trains; an encoder is before all of them."""
    layers = form.layers or []
    if form.encoder is not None and not form.encoder.frozen:
        return 0
    return next((at for at, layer in enumerate(layers) if not layer.frozen), len(layers))


def _untrained(entry: LayerEntry) -> dict[str, object]:
    """No W and nothing once an iteration."""
    return {"weight": None if entry.weight is None else _ZERO, "fused": None, "reduce": None, "step": None}


def _forward_only(entry: LayerEntry) -> LayerEntry:
    """Without a backward there is nothing to hold for it."""
    held = dict.fromkeys(("activation", "freed_by_backward", "kept_for_later", "recompute"))
    return entry.model_copy(update=_untrained(entry) | held | {"backward": _ZERO, "attention_backward": _ZERO})


def _frozen(entry: LayerEntry) -> LayerEntry:
    """After a layer that trains: B is left, and gives back the whole activation."""
    if not entry.frozen:
        return entry
    own: dict[str, object] = _untrained(entry) | {"frozen": False}
    if entry.weight is not None and entry.backward is not None:
        own["freed_by_backward"] = max(entry.activation or _ZERO, entry.freed_by_backward or _ZERO)
        share = entry.attention if entry.attention_backward is None else entry.attention_backward
        # Of the backward that is left the same attention is a larger share.
        own["attention_backward"] = share * (entry.backward + entry.weight) / entry.backward if share else share
    return entry.model_copy(update=own)
