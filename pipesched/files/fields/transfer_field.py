"""The field for transfer times in a problem file: its forms, its error messages and its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any

from pipesched.files.fields.field import (
    FINITE,
    NUMBER,
    POSITIVE,
    WrongEntries,
    WrongEntry,
    as_list,
    at_least,
    field,
    one_or_list,
    or_list,
    whole_number,
)
from pipesched.files.fields.field_types import NAME, task_name
from pipesched.files.fields.link_times import Latency, NodeLinks, Occupying, Transfer


def _transfer(value: object) -> Transfer | None:
    """Return the transfer times of a file's value, with the stream that they occupy, if any.

    None or `WrongEntries` if wrong.
    """
    if isinstance(value, Mapping) and not {"time", "on", "both"}.isdisjoint(value):
        fields = {"time": (_latency, _LATENCY), "on": (task_name, _STREAM)}
        return Occupying(*_section(fields | ({"both": (_truth, "true or false")} if "both" in value else {}), value))
    return _latency(value)


def _truth(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _latency(value: object) -> Latency | None:
    """Return transfer times by stage, as a matrix with a row for each sending device, or within and between nodes.

    None or `WrongEntries` for anything else.
    """
    if isinstance(value, Mapping):
        number = (at_least(0), POSITIVE)
        fields = {"intra_node": number, "inter_node": number, "nodes": (_node_numbers, _NODE_NUMBERS)}
        return None if fields.keys().isdisjoint(value) else NodeLinks(*_section(fields, value))
    numbers = one_or_list(at_least(0), POSITIVE)
    rows = as_list(value)
    if rows is None or any(as_list(row) is None for row in rows):
        return numbers(value)
    row = (numbers, f"a list of numbers of at least 0 ({FINITE})")
    matrix: list[list[Fraction]] = _entries({f"[{at}]": row for at in range(len(rows))}, *map(as_list, rows))
    return matrix or None


def _node_numbers(value: object) -> tuple[int, ...] | None:
    nodes = as_list(value)
    if nodes is None:
        return None
    node = (whole_number(0), "a whole number of at least 0")
    return tuple(_entries({f"[{at}]": node for at in range(len(nodes))}, *nodes))


def _section(fields: Mapping[str, tuple[Callable[[Any], Any], str]], value: Mapping[Any, object]) -> list[Any]:
    """Return the converted values of a mapping with exactly the keys of `fields`, in their order.

    `fields` gives, for each key, its validator and the text of what is allowed. `WrongEntries` names missing, wrong and
    unknown keys.
    """
    only = f"no key but {', '.join(fields)}"
    others = {f".{key}": (_nothing, only) for key in value if key not in fields}
    own = {f".{key}": accept for key, accept in fields.items()}
    found = [value.get(key) for key in fields]
    return _entries(own | others, *found, *(one for key, one in value.items() if key not in fields))


def _nothing(_: object) -> None:
    return None


def _entries(fields: Mapping[str, tuple[Callable[[Any], Any], str]], *values: object) -> list[Any]:
    """Return values converted by their validators, in the order of `fields`.

    `WrongEntries` names all that are refused.
    """
    found, wrong = [], list[WrongEntry]()
    for (place, (accept, allowed)), value in zip(fields.items(), values, strict=True):
        try:
            found.append(accept(value))
            if found[-1] is None:
                wrong.append(WrongEntry(place, value, allowed))
        except WrongEntries as inside:
            wrong += [entry._replace(place=place + entry.place) for entry in inside.entries]
    if wrong:
        raise WrongEntries(wrong)
    return found


_LATENCY = f"a number, a list of them, one per stage, or a row of them for each sending device ({FINITE})"
_STREAM = "the name of a stream"
_NODE_NUMBERS = "a list with the node of each device"
_ROWS = {"type": "array", "items": {"type": "array", "items": NUMBER, "minItems": 1}, "minItems": 1}
_NODES = {
    "type": "object",
    "properties": {
        "intra_node": NUMBER,
        "inter_node": NUMBER,
        "nodes": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    },
    "required": ["intra_node", "inter_node", "nodes"],
    "additionalProperties": False,
}
_LATENCIES = [*or_list(NUMBER)["anyOf"], _ROWS, _NODES]
_OCCUPYING = {
    "type": "object",
    "properties": {"time": {"anyOf": _LATENCIES}, "on": NAME, "both": {"type": "boolean"}},
    "required": ["time", "on"],
    "additionalProperties": False,
}
TransferField = Annotated[
    Transfer,
    field(
        f"a number of at least 0, a list of them, one per stage, a list of such lists, from each device to each other, "
        "or intra_node, inter_node and nodes; or time, one of these, on, a stream, and both, whether the receiver's is "
        f"occupied too ({FINITE})",
        _transfer,
        {"anyOf": [*_LATENCIES, _OCCUPYING]},
    ),
]
