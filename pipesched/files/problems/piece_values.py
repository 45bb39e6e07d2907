"""Values of the pieces of a micro-batch (`sequence_chunks`): what a file may write, and each piece's own file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import WithJsonSchema

from pipesched.files.exact_numbers import as_number
from pipesched.files.fields import field_types
from pipesched.files.fields.field import NUMBER, as_list, finite_number, whole_number
from pipesched.files.schema_errors import shown

# The keys whose values may differ from piece to piece.
KEYS = {
    "times": ("forward", "backward", "weight", "fused"),
    "memory": ("activation", "freed_by_backward", "kept_for_later"),
    "memory.offload": ("out", "in", "amount"),
}
GROWING = ("first", "each_earlier")
# More chains than this are of no use, and take long to read.
MOST_PIECES = 1024


def _forms(number: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a value of pieces, made of such numbers."""
    grows: dict[str, Any] = {
        "type": "object",
        "properties": {GROWING[0]: number, GROWING[1]: field_types.SIGNED},
        "required": list(GROWING),
        "additionalProperties": False,
    }
    of_stage = {"anyOf": [number, grows, {"type": "array", "items": number, "minItems": 1}]}
    return {"anyOf": [number, grows, {"type": "array", "items": of_stage, "minItems": 1}]}


PieceNumbers = Annotated[field_types.Numbers, WithJsonSchema(_forms(NUMBER))]
SignedPieceNumbers = Annotated[field_types.SignedNumbers, WithJsonSchema(_forms(field_types.SIGNED))]


class NotOfPiecesError(ValueError):
    """A value that is none of the forms for pieces; `allowed` says what they are."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"a number, {GROWING[0]} and {GROWING[1]}, or a list of {count} numbers, one per piece; or a list of "
            "these, one per stage"
        )


def piece_documents(document: object) -> tuple[list[object], list[str]]:
    """The document of each piece, as if it were the only one of its micro-batch, and what is wrong with its values.

    A document without pieces is the only one.
    """
    if not isinstance(document, Mapping) or document.get("sequence_chunks") is None:
        return [document], []
    count = whole_number(1)(document["sequence_chunks"])
    if count is None or count > MOST_PIECES:
        # How many values there should be is then unknown.
        text = f"sequence_chunks: found {shown(document['sequence_chunks'])}; allowed: 1 to {MOST_PIECES}"
        valid = {"forward": 1, "backward": 1}
        return [dict(document) | {"sequence_chunks": None, "times": valid, "memory": None}], [text]
    found = list[str]()
    pieces: list[dict[str, Any]] = [dict(document) | {"sequence_chunks": None} for _ in range(count)]
    for path, keys in KEYS.items():
        for number, piece in enumerate(pieces):
            held = piece
            for name in path.split("."):
                held = _section(held, name)
            for key in (key for key in keys if held.get(key) is not None):
                try:
                    held[key] = _of_piece(held[key], number, count)
                except NotOfPiecesError as allowed:
                    found.append(f"{path}.{key}: found {shown(held[key])}; allowed: {allowed}")
                    held[key] = 0
    return list(pieces), list(dict.fromkeys(found))


def _section(held: dict[str, Any], key: str) -> dict[str, Any]:
    """A section of a piece's document as its own, to be changed; an empty one where there is none."""
    if not isinstance(held.get(key), Mapping):
        return {}
    found: dict[str, Any] = dict(held[key])
    held[key] = found
    return found


def _of_piece(value: object, piece: int, count: int) -> object:
    """The value of one piece: a number, or a list with one a stage."""
    entries = as_list(value)
    if entries is not None and any(isinstance(entry, Mapping) or as_list(entry) is not None for entry in entries):
        return [_of_stage(entry, piece, count) for entry in entries]
    return _of_stage(value, piece, count)


def _of_stage(value: object, piece: int, count: int) -> object:
    entries = as_list(value)
    if entries is not None:
        if len(entries) != count:
            raise NotOfPiecesError(count)
        return entries[piece]
    if not isinstance(value, Mapping):
        return value
    first, more = (finite_number(value.get(key)) for key in GROWING)
    if set(value) != set(GROWING) or first is None or more is None:
        raise NotOfPiecesError(count)
    value = first + piece * more
    return value if isinstance(as_number(value), str) else as_number(value)
