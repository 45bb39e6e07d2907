"""Frozen layers of a plan file: the costs that remain for them, and the features that they exclude."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.rounding import short

_ZERO = Fraction(0)


def with_frozen_layers(form: PlanFile) -> PlanFile:
    """Return the form with the costs of frozen layers: no W, and no backward before the first layer that trains.

    Only layers before the first one that trains keep the mark `frozen`.
    """
    before = _before_training(form)
    layers = [_forward_only(layer) if at < before else _frozen(layer) for at, layer in enumerate(form.layers or ())]
    found = form.model_copy(update={"layers": layers})
    if form.encoder is not None and form.encoder.frozen:
        own = _forward_only(form.encoder.as_layer)
        costs = {key: getattr(own, key) for key in type(form.encoder).model_fields if hasattr(own, key)}
        found = found.model_copy(update={"encoder": form.encoder.model_copy(update=costs)})
    return found


def frozen_names(form: PlanFile) -> tuple[str, ...]:
    """Return the names of frozen layers, each once, in the order of the layers."""
    return tuple(dict.fromkeys(layer.name for layer in form.layers or () if layer.frozen and layer.name))


def adapter_rank(form: PlanFile) -> int | None:
    """Return the rank of LoRA adapters; None where the model trains its weights."""
    return None if form.model is None or form.model.lora is None else form.model.lora.rank


def notes_on_frozen(form: PlanFile) -> list[str]:
    """Return notes on frozen layers after a trained one whose backward is not split, and counts as the input's
    alone."""
    found = dict.fromkeys(
        f"layers: {layer.name}: frozen, and its backward, {short(layer.backward)}, is not split from a W; it is taken "
        "as that for its input alone"
        for layer in (form.layers or ())[_before_training(form) :]
        if layer.frozen and layer.weight is None and layer.backward
    )
    return [*found]


def frozen_mistakes(form: PlanFile) -> Iterator[str]:
    """Yield mistakes of frozen layers.

    A name may not stand for layers both before and after the first one that trains, since their costs differ. A frozen
    layer before it keeps no keys and values for later pieces, since no backward would free them.
    """
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
    """Return the number of layer entries before the first one that trains.

    0 if the encoder before all of them trains.
    """
    layers = form.layers or []
    if form.encoder is not None and not form.encoder.frozen:
        return 0
    return next((at for at, layer in enumerate(layers) if not layer.frozen), len(layers))


def _untrained(entry: LayerEntry) -> dict[str, object]:
    """Return the changes to a layer's costs if its weights do not train: no W, no reduction, no optimizer step."""
    return {"weight": None if entry.weight is None else _ZERO, "fused": None, "reduce": None, "step": None}


def _forward_only(entry: LayerEntry) -> LayerEntry:
    """Return a layer entry without backward and without memory kept for one."""
    held = dict.fromkeys(("activation", "freed_by_backward", "kept_for_later", "recompute"))
    return entry.model_copy(update=_untrained(entry) | held | {"backward": _ZERO, "attention_backward": _ZERO})


def _frozen(entry: LayerEntry) -> LayerEntry:
    """Return the entry of a layer after the first one that trains: if frozen, only B is left, and frees all
    activation."""
    if not entry.frozen:
        return entry
    own: dict[str, object] = _untrained(entry) | {"frozen": False}
    if entry.weight is not None and entry.backward is not None:
        own["freed_by_backward"] = max(entry.activation or _ZERO, entry.freed_by_backward or _ZERO)
        share = entry.attention if entry.attention_backward is None else entry.attention_backward
        # Of the backward that is left the same attention is a larger share.
        own["attention_backward"] = share * (entry.backward + entry.weight) / entry.backward if share else share
    return entry.model_copy(update=own)
