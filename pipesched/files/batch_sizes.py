"""Sizes of micro-batches that a file with a batch lists: its document with each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.fields.field import as_list, whole_number
from pipesched.files.fields.together import at
from pipesched.files.schema_errors import shown

COUNT, SIZE = "microbatches", "model.microbatch_size"
_ALLOWED = "a whole number of at least 1, or a list of different ones"
SEARCHED = "one here; solve, plan and sweep search a list"


class Sizes(NamedTuple):
    """The key of a document that lists sizes, and these."""

    path: str
    values: tuple[int, ...]


def sizes_of(document: object, source: str) -> Sizes | None:
    """Of a problem or plan file: its numbers of micro-batches, or sequences of one; None where it lists none.

    `BadInput` where a list has no batch to share, or what is no size.
    """
    if not isinstance(document, Mapping):
        return None
    listed = [(path, own) for path in (COUNT, SIZE) if (own := as_list(at(document, path))) is not None]
    if not listed:
        return None
    if len(listed) > 1:
        raise BadInput(f"{source}: {COUNT}: found a list with a list of {SIZE}; allowed: one of the two")
    ((path, own),) = listed
    if document.get("batch") is None:
        raise BadInput(f"{source}: {path}: found a list without batch; allowed: with batch, or one number")
    values = tuple(size for size in map(whole_number(1), own) if size is not None)
    if not values or len(values) < len(own) or len({*values}) < len(own):
        raise BadInput(f"{source}: {path}: found {shown(own)}; allowed: {_ALLOWED}")
    return Sizes(path, values)


class OfOneSize(NamedTuple):
    """The document with one size, and the sequences of a micro-batch there; None where it does not say."""

    document: Any
    sequences: int | None


def with_each_size(document: Any, source: str) -> Sequence[OfOneSize]:
    """The document for each size that it lists, in this order; itself where it lists none."""
    sizes = sizes_of(document, source)
    if sizes is None:
        return [OfOneSize(document, None)]
    own = [_with(document, sizes.path.split("."), value) for value in sizes.values]
    return [OfOneSize(one, _sequences(one)) for one in own]


def _sequences(document: Mapping[str, Any]) -> int | None:
    size = whole_number(1)(at(document, SIZE) if "model" in document else at(document, "batch.size"))
    return size if size is None or "model" in document else size // document[COUNT]


def with_axis_of_sizes(document: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """The document with the sizes that it lists as an axis of its sweep."""
    sizes = sizes_of(document, source)
    if sizes is None:
        return document
    section = document.get("sweep") or {}
    if not isinstance(section, Mapping):
        return document
    return {
        **_with(document, sizes.path.split("."), sizes.values[0]),
        "sweep": {sizes.path: [*sizes.values], **section},
    }


def or_several(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a key that may list sizes, of that of one size."""
    ways = schema.get("anyOf") or [{key: schema[key] for key in ("type", "minimum")}]
    one = next(way for way in ways if way["type"] == "integer")
    own = {key: value for key, value in schema.items() if key not in ("anyOf", *one)}
    return {"anyOf": [*ways, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}], **own}


def _with(document: Mapping[str, Any], path: Sequence[str], value: int) -> dict[str, Any]:
    first, *below = path
    return {**document, first: _with(document[first], below, value) if below else value}
