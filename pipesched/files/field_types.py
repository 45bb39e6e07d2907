"""The field types of a problem file, each with its error message and JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from pipesched.files.link_times import Latency, NodeLinks, Occupying, Transfer, node_links
from pipesched.problem.formatting import visible
from pipesched.problem.placement import PLACEMENTS

# Beyond these a file holds a slip of the keyboard, and exact arithmetic would turn it into a very long wait.
LARGEST = 10**12
_LEAST_EXPONENT = -30
_MOST_DIGITS = 100


class WrongEntry(NamedTuple):
    """An entry of a value that is not allowed: where it stands in it, as `[2]` or `.nodes[1]`, and what is allowed."""

    place: str
    found: object
    allowed: str


class WrongEntries(Exception):
    """All entries of a value that are not allowed."""

    def __init__(self, entries: list[WrongEntry]) -> None:
        super().__init__()
        self.entries = entries


def _number(value: object) -> Fraction | None:
    """The exact value of a finite number within the limits above; None for anything else.

    Floats, Python's and NumPy's, come from Python alone and are what they print as; files are read as decimals.
    """
    match value:
        case bool():
            return None
        case Integral():
            number = Fraction(int(value))
        case Rational():
            number = Fraction(int(value.numerator), int(value.denominator))
        case Decimal() | Real():
            decimal = Decimal(str(value))
            if not decimal:
                return Fraction(0)
            if not decimal.is_finite() or not _LEAST_EXPONENT <= decimal.adjusted() <= len(str(LARGEST)):
                return None
            if len(decimal.as_tuple().digits) > _MOST_DIGITS:
                return None
            number = Fraction(decimal)
        case _:
            return None
    return number if abs(number) <= LARGEST else None


def as_list(value: object) -> list[object] | None:
    """The entries of a list, tuple or NumPy array; None for anything else."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else None
    return list(value) if isinstance(value, list | tuple) else None


def _field(allowed: str, accept: Callable[[Any], object]) -> PlainValidator:
    """A validator whose error message is what is allowed; `accept` returns None for what is not."""

    def check(value: object) -> object:
        try:
            result = accept(value)
        except WrongEntries as wrong:
            context = {"allowed": allowed, "entries": wrong.entries}
            raise PydanticCustomError("not_allowed", "{allowed}", context) from None
        if result is None:
            raise PydanticCustomError("not_allowed", "{allowed}", {"allowed": allowed})
        return result

    return PlainValidator(check)


def _at_least(limit: int) -> Callable[[object], Fraction | None]:
    def accept(value: object) -> Fraction | None:
        number = _number(value)
        return number if number is not None and number >= limit else None

    return accept


def _whole(limit: int) -> Callable[[object], int | None]:
    def accept(value: object) -> int | None:
        whole = isinstance(value, Integral) and not isinstance(value, bool) and limit <= int(value) <= LARGEST
        return int(value) if whole else None  # type: ignore[call-overload]

    return accept


def _one_or_list(
    one: Callable[[object], Fraction | None], allowed: str
) -> Callable[[object], Fraction | list[Fraction] | None]:
    def accept(value: object) -> Fraction | list[Fraction] | None:
        entries = as_list(value)
        if entries is None:
            return one(value)
        numbers = [one(item) for item in entries]
        wrong = [(at, item) for at, (item, number) in enumerate(zip(entries, numbers, strict=True)) if number is None]
        if wrong:
            raise WrongEntries([WrongEntry(f"[{at}]", item, allowed) for at, item in wrong])
        return [number for number in numbers if number is not None] or None

    return accept


def _text(value: object) -> str | None:
    # Half of a character of two code units can be read from JSON, and written nowhere.
    if not isinstance(value, str) or re.search("[\\ud800-\\udfff]", value):
        return None
    # Labels reach terminals, pictures and pages: escaped here, they are harmless in all of them.
    return visible(value).replace("\n", "\\n")


_NUMBER = {"type": "number", "minimum": 0, "maximum": LARGEST}
_SIGNED = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}


def _or_list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


FINITE = f"finite, 0 or 1e{_LEAST_EXPONENT} to {LARGEST:.0e}, at most {_MOST_DIGITS} digits"
_POSITIVE = f"a number of at least 0 ({FINITE})"

Text = Annotated[str, _field("text", _text), WithJsonSchema({"type": "string"})]
Count = Annotated[
    int, _field("a whole number of at least 1", _whole(1)), WithJsonSchema({"type": "integer", "minimum": 1})
]
Number = Annotated[Fraction, _field(_POSITIVE, _at_least(0)), WithJsonSchema(_NUMBER)]
Numbers = Annotated[
    Fraction | list[Fraction],
    _field(
        f"a number of at least 0, or a list of them, one per stage ({FINITE})", _one_or_list(_at_least(0), _POSITIVE)
    ),
    WithJsonSchema(_or_list(_NUMBER)),
]
NumbersPerDevice = Annotated[
    Fraction | list[Fraction],
    _field(
        f"a number of at least 0, or a list of them, one per device ({FINITE})", _one_or_list(_at_least(0), _POSITIVE)
    ),
    WithJsonSchema(_or_list(_NUMBER)),
]
NumbersPerDeviceOrStage = Annotated[
    Fraction | list[Fraction],
    _field(
        f"a number of at least 0, or a list of them, one per device or stage ({FINITE})",
        _one_or_list(_at_least(0), _POSITIVE),
    ),
    WithJsonSchema(_or_list(_NUMBER)),
]
SignedNumbers = Annotated[
    Fraction | list[Fraction],
    _field(f"a number, or a list of them, one per stage ({FINITE})", _one_or_list(_number, f"a number ({FINITE})")),
    WithJsonSchema(_or_list(_SIGNED)),
]


# What streams and tasks are called: no mark of the schedule file's notation, and no number.
_NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_-]{0,39}"
_NAME = {"type": "string", "pattern": f"^{_NAME_PATTERN}$"}


def _task_name(value: object) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(_NAME_PATTERN, value) else None


Name = Annotated[
    str,
    _field("a name: a letter or _, then letters, digits, - and _, up to 40 characters", _task_name),
    WithJsonSchema(_NAME),
]


def _names(value: object) -> list[str] | None:
    entries = as_list(value)
    if entries is None:
        return None
    wrong = [(at, item) for at, item in enumerate(entries) if _task_name(item) is None]
    if wrong:
        allowed = "a name of letters, digits, - and _ that begins with a letter"
        raise WrongEntries([WrongEntry(f"[{at}]", item, allowed) for at, item in wrong])
    return [str(item) for item in entries] or None


Names = Annotated[
    list[str],
    _field("a list of names", _names),
    WithJsonSchema({"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True}),
]


def _counts(value: object) -> int | list[int] | None:
    entries = as_list(value)
    if entries is None:
        return _whole(1)(value)
    numbers = [_whole(1)(item) for item in entries]
    wrong = [(at, item) for at, (item, number) in enumerate(zip(entries, numbers, strict=True)) if number is None]
    if wrong:
        raise WrongEntries([WrongEntry(f"[{at}]", item, "a whole number of at least 1") for at, item in wrong])
    return [number for number in numbers if number is not None] or None


Counts = Annotated[
    int | list[int],
    _field("a whole number of at least 1, or a list of them, one per stage", _counts),
    WithJsonSchema(_or_list({"type": "integer", "minimum": 1, "maximum": LARGEST})),
]


def _transfer(value: object) -> Transfer | None:
    """A time, or a time and the stream that the transfer occupies for it."""
    if isinstance(value, Mapping) and set(value) == {"time", "on"}:
        time, on = _entries({".time": (_latency, _LATENCY), ".on": (_task_name, _STREAM)}, value["time"], value["on"])
        return Occupying(time, on)
    return _latency(value)


def _latency(value: object) -> Latency | None:
    """Numbers as for other times, a row of numbers for each device, or times by node."""
    if isinstance(value, Mapping):
        given = node_links(value)
        if given is None:
            return None
        number = (_at_least(0), _POSITIVE)
        within, between, nodes = _entries(
            {".intra_node": number, ".inter_node": number, ".nodes": (_node_numbers, _NODE_NUMBERS)}, *given
        )
        return NodeLinks(within, between, nodes)
    one_or_list = _one_or_list(_at_least(0), _POSITIVE)
    rows = as_list(value)
    if rows is None or any(as_list(row) is None for row in rows):
        return one_or_list(value)
    row = (one_or_list, f"a list of numbers of at least 0 ({FINITE})")
    matrix: list[list[Fraction]] = _entries({f"[{at}]": row for at in range(len(rows))}, *map(as_list, rows))
    return matrix or None


def _node_numbers(value: object) -> tuple[int, ...] | None:
    nodes = as_list(value)
    if nodes is None:
        return None
    return tuple(_entries({f"[{at}]": (_whole(0), "a whole number of at least 0") for at in range(len(nodes))}, *nodes))


def _entries(fields: Mapping[str, tuple[Callable[[Any], Any], str]], *values: object) -> list[Any]:
    """The values as their fields accept them, by place; `WrongEntries` names every one that none accepts."""
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
_ROWS = {"type": "array", "items": {"type": "array", "items": _NUMBER, "minItems": 1}, "minItems": 1}
_NODES = {
    "type": "object",
    "properties": {
        "intra_node": _NUMBER,
        "inter_node": _NUMBER,
        "nodes": {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
    },
    "required": ["intra_node", "inter_node", "nodes"],
    "additionalProperties": False,
}
_LATENCIES = [*_or_list(_NUMBER)["anyOf"], _ROWS, _NODES]
_OCCUPYING = {
    "type": "object",
    "properties": {"time": {"anyOf": _LATENCIES}, "on": _NAME},
    "required": ["time", "on"],
    "additionalProperties": False,
}
TransferField = Annotated[
    Transfer,
    _field(
        f"a number of at least 0, a list of them, one per stage, a list of such lists, from each device to each other, "
        f"or intra_node, inter_node and nodes; or time, one of these, and on, a stream ({FINITE})",
        _transfer,
    ),
    WithJsonSchema({"anyOf": [*_LATENCIES, _OCCUPYING]}),
]


def one_of(*names: str) -> PlainValidator:
    """A validator for a choice of words."""
    return _field(", ".join(names), lambda value: value if isinstance(value, str) and value in names else None)


def _placement(value: object) -> object:
    entries = as_list(value)
    if entries is not None:
        devices = [_whole(0)(item) for item in entries]
        return devices if devices and None not in devices else None
    return value if isinstance(value, str) and value in PLACEMENTS else None


PlacementField = Annotated[
    str | list[int],
    _field(f"{', '.join(PLACEMENTS)}, or a list with the device of each stage", _placement),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(PLACEMENTS)},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        }
    ),
]
