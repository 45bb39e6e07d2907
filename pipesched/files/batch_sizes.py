"""Problem and plan files that list several micro-batch sizes for one batch: one document for each size.

The list, of whole numbers, stands under `microbatches` or, in a plan file with `model`, under `model.microbatch_size`,
in a document with the key `batch`.
"""

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
    """The list of micro-batch sizes of a document: its key path, and its values, different ones in the file's order.

    Under `microbatches` a value is a number of micro-batches, under `model.microbatch_size` a number of sequences of
    one micro-batch.
    """

    path: str
    values: tuple[int, ...]


def sizes_of(document: object, source: str) -> Sizes | None:
    """Return the list of micro-batch sizes in a problem or plan document; None where it lists none.

    `BadInput` where the document lists sizes without `batch`, lists them under both keys, has an entry that is no size,
    or has one twice. `source` names the document in messages.
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


class SizedDocument(NamedTuple):
    """A document reduced to one micro-batch size, and the sequences of a micro-batch.

    The latter is None where the document lists no sizes, or does not say how many sequences the batch has.
    """

    document: Any
    sequences: int | None


def with_each_size(document: Any, source: str) -> Sequence[SizedDocument]:
    """Return one document for each micro-batch size listed, in the order of the list; the document alone if none is.

    `source` names the document in messages. `BadInput` for a wrong list.
    """
    sizes = sizes_of(document, source)
    if sizes is None:
        return [SizedDocument(document, None)]
    own = [_with(document, sizes.path.split("."), value) for value in sizes.values]
    return [SizedDocument(one, _sequences(one)) for one in own]


def _sequences(document: Mapping[str, Any]) -> int | None:
    size = whole_number(1)(at(document, SIZE) if "model" in document else at(document, "batch.size"))
    return size if size is None or "model" in document else size // document[COUNT]


def with_axis_of_sizes(document: Mapping[str, Any], source: str) -> Mapping[str, Any]:
    """Return the document with its list of micro-batch sizes as the first axis of its `sweep` section.

    The first size is in the place of the list. An axis for this key that the section has keeps its values and becomes
    the first. The document itself where it lists no sizes, or its `sweep` is no section. `source` names the document in
    messages. `BadInput` for a wrong list, as in `sizes_of`.
    """
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
    """Return the JSON Schema of a key for one micro-batch size, extended so that it also accepts a list of sizes."""
    options = schema.get("anyOf") or [{key: schema[key] for key in ("type", "minimum")}]
    one = next(option for option in options if option["type"] == "integer")
    own = {key: value for key, value in schema.items() if key not in ("anyOf", *one)}
    return {"anyOf": [*options, {"type": "array", "items": one, "minItems": 1, "uniqueItems": True}], **own}


def _with(document: Mapping[str, Any], path: Sequence[str], value: int) -> dict[str, Any]:
    first, *inner = path
    return {**document, first: _with(document[first], inner, value) if inner else value}
