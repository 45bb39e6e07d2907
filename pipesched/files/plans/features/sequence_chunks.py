"""The key `sequence_chunks` of a plan file: numbers of pieces to choose from, and layers' costs that depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import WrongEntries, field, or_list
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section
from pipesched.files.fields.together import Part, Refused, at, given
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    LayerEntry,
    PlanFeature,
    PlanForm,
    Rounding,
    WriteLayer,
)
from pipesched.files.plans.fields import ShareField, counts_of
from pipesched.files.schema_errors import shown_amount
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.pieces import Lengths, SequenceCut, exact_numbers
from pipesched.layers.plan_problem import Choice, PlanProblem

# A plan tries every number of pieces on every placement, and each piece has stages of its own.
_MOST_PIECES = 64
_FREE = "free"


class PieceChoices(NamedTuple):
    """Numbers (`counts`) of pieces into which a micro-batch may be cut, each once, and the rules for their lengths.

    Lengths are equal, or take equal time.
    """

    counts: tuple[int, ...]
    lengths: tuple[Lengths, ...]


def _pieces(value: object) -> PieceChoices | None:
    given = value if isinstance(value, dict) else {"count": value}
    try:
        counts = counts_of(given.get("count"))
    except WrongEntries:
        return None
    lengths = str(given.get("lengths", Lengths.EQUAL))
    known = lengths in (*Lengths, _FREE)
    if not set(given) <= {"count", "lengths"} or counts is None or max(counts) > _MOST_PIECES or not known:
        return None
    return PieceChoices(tuple(dict.fromkeys(counts)), tuple(Lengths) if lengths == _FREE else (Lengths(lengths),))


_PIECES: dict[str, Any] = or_list({"type": "integer", "minimum": 1, "maximum": _MOST_PIECES})
PiecesField = Annotated[
    PieceChoices,
    field(
        f"a whole number from 1 to {_MOST_PIECES}, a list of them, or count with these and lengths "
        f"({', '.join((*Lengths, _FREE))})",
        _pieces,
        {
            "anyOf": [
                *_PIECES["anyOf"],
                {
                    "type": "object",
                    "properties": {"count": _PIECES, "lengths": {"enum": [*Lengths, _FREE]}},
                    "required": ["count"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]


class Keys(Section):
    """The key `sequence_chunks`: the numbers of pieces to choose from."""

    sequence_chunks: PiecesField | None = Field(
        None,
        description="pieces of a micro-batch's sequence to choose from: numbers, or count with them and lengths "
        "(equal, equal_time, or free, which tries both); default 1",
    )


class LayerKeys(Section):
    """Keys of a layer for costs that are not proportional to a piece's length."""

    attention: ShareField = Field(
        Fraction(0),
        description="with sequence_chunks: the share of its forward, and of its full backward, that grows with the "
        "pieces before it; default 0",
        json_schema_extra={"default": 0},
    )
    attention_backward: ShareField | None = Field(
        None, description="that share of the full backward, all of it in B; default attention"
    )
    kept_for_later: field_types.Number | None = Field(
        None, description="part of activation (keys and values) held to the first piece's backward; default 0"
    )


def _layer_mistakes(place: str, layer: LayerEntry, unit: str) -> Iterator[str]:
    activation, freed = layer.activation or Fraction(0), layer.freed_by_backward or Fraction(0)
    kept = layer.kept_for_later or Fraction(0)
    if kept + max(Fraction(0), freed) > activation and freed <= activation:
        found, allowed = shown_amount(kept, unit), shown_amount(activation - max(Fraction(0), freed), unit)
        yield (
            f"{place}.kept_for_later: found {found}; allowed: at most the activation without what is freed, {allowed}"
        )
    backward, weight = layer.backward or Fraction(0), layer.weight or Fraction(0)
    most = backward if layer.fused is None else min(backward, layer.fused)
    share = layer.attention if layer.attention_backward is None else layer.attention_backward
    if share * (backward + weight) > most:
        key = "attention" if layer.attention_backward is None else "attention_backward"
        yield (
            f"{place}.{key}: found {float(share):g} of the full backward; allowed: no more than B, "
            f"{float(most / (backward + weight)):.3g}, since attention has no weights"
        )


def _choices(choice: Choice, form: PlanForm) -> Iterator[Choice]:
    counts, lengths = form.sequence_chunks or PieceChoices((1,), (Lengths.EQUAL,))
    attention = any(layer.attention or layer.attention_backward for layer in form.layers or ())
    for count in counts:
        # Without attention equal time is equal length.
        for how in lengths if count > 1 and attention else (Lengths.EQUAL,):
            yield choice._replace(cut=SequenceCut(count, how))


def _parts(form: PlanForm, choices: Choices) -> tuple[Sequence[Fraction], Sequence[Fraction]]:
    """Return the times, and the amounts of memory, of each layer up to the ends of pieces, for every allowed cut.

    In the file's units.
    """
    cuts = {choice.cut for choice in choices if not choice.whole}
    layers = tuple(_unrounded(layer) for layer in form.layers or ())
    every = [(layer, ends) for layer in layers for ends in [cut.ends(Model(layers)) for cut in cuts]]
    times = [number for layer, ends in every for number in exact_numbers(layer, ends)]
    return times, [end * amount for layer, ends in every for amount in _amounts(layer) for end in ends]


def _unrounded(entry: LayerEntry) -> LayerType:
    attention, backward, zero = entry.attention, entry.attention_backward, Fraction(0)
    return LayerType(
        "",
        entry.forward,
        entry.backward,
        entry.count,
        entry.weight,
        entry.fused,
        activation=entry.activation or zero,
        recompute=tuple(RecomputeMode("", mode.time or zero, mode.keeps or zero) for mode in entry.recompute or ()),
        attention=attention,
        attention_backward=attention if backward is None else backward,
        kept_for_later=entry.kept_for_later or zero,
    )


def _amounts(layer: LayerType) -> list[Fraction]:
    """Return the amounts of a layer's memory of which a piece of a sequence takes a share, in the file's unit."""
    return [layer.activation, layer.kept_for_later, *(layer.activation * mode.keeps for mode in layer.recompute)]


def _layer(entry: LayerEntry, _form: PlanForm, rounding: Rounding) -> Mapping[str, Any]:
    return {
        "attention": entry.attention,
        "attention_backward": entry.attention if entry.attention_backward is None else entry.attention_backward,
        "kept_for_later": rounding.amount(entry.kept_for_later),
    }


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    counts = sorted({choice.cut.number for choice in plan.choices})
    if counts == [1]:
        return {}
    lengths = sorted({choice.cut.lengths.value for choice in plan.choices if not choice.whole})
    return {"sequence_chunks": {"count": counts, "lengths": lengths[0] if len(lengths) == 1 else "free"}}


def _layer_written(layer: LayerType) -> Mapping[str, Any]:
    own = {key: getattr(layer, key) for key in LayerKeys.model_fields}
    return own if any(own.values()) else {}


_NEAR = Part(
    "model.attention.window",
    "window or chunk",
    lambda document: any(at(document, f"model.attention.{key}") is not None for key in ("window", "chunk")),
)

PLAN_FEATURES.register(
    PlanFeature(
        name="sequence_chunks",
        keys=Keys,
        sections={"layers": LayerKeys},
        with_units={
            "layers.kept_for_later": QuantityKind.PART,
            "layers.attention": QuantityKind.SHARE,
            "layers.attention_backward": QuantityKind.SHARE,
        },
        layer_mistakes=_layer_mistakes,
        refused=(Refused(given("sequence_chunks"), _NEAR, "without", "attention there does not grow"),),
        parts=_parts,
        choices=_choices,
        layer=_layer,
        written=_written,
        layer_written=_layer_written,
    )
)
