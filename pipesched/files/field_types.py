"""The field types of a problem file, each with its error message and JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from pipesched.problem.formatting import visible
from pipesched.problem.placement import PLACEMENTS

# Beyond these a file holds a slip of the keyboard, and exact arithmetic would turn it into a very long wait.
LARGEST = 10**12
_LEAST_EXPONENT = -30
_MOST_DIGITS = 100


Entry = TypeVar("Entry")


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


def field(allowed: str, accept: Callable[[Any], object]) -> PlainValidator:
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


def at_least(limit: int) -> Callable[[object], Fraction | None]:
    """Accepts numbers of at least so much."""

    def accept(value: object) -> Fraction | None:
        number = _number(value)
        return number if number is not None and number >= limit else None

    return accept


def whole_number(limit: int) -> Callable[[object], int | None]:
    """Accepts whole numbers of at least so much."""

    def accept(value: object) -> int | None:
        whole = isinstance(value, Integral) and not isinstance(value, bool) and limit <= int(value) <= LARGEST
        return int(value) if whole else None  # type: ignore[call-overload]

    return accept


def one_or_list(
    one: Callable[[object], Fraction | None], allowed: str
) -> Callable[[object], Fraction | list[Fraction] | None]:
    """Accepts one number or a list of them, of whose entries `allowed` says what they may be."""

    def accept(value: object) -> Fraction | list[Fraction] | None:
        entries = as_list(value)
        if entries is None:
            return one(value)
        return _each(one, entries, allowed)

    return accept


def _each(one: Callable[[object], Entry | None], entries: list[object], allowed: str) -> list[Entry] | None:
    """Every entry as `one` accepts it, None where there is none; `WrongEntries` names all that it does not."""
    accepted = [one(item) for item in entries]
    wrong = [at for at, entry in enumerate(accepted) if entry is None]
    if wrong:
        raise WrongEntries([WrongEntry(f"[{at}]", entries[at], allowed) for at in wrong])
    return [entry for entry in accepted if entry is not None] or None


def _text(value: object) -> str | None:
    # Half of a character of two code units can be read from JSON, and written nowhere.
    if not isinstance(value, str) or re.search("[\\ud800-\\udfff]", value):
        return None
    # Labels reach terminals, pictures and pages: escaped here, they are harmless in all of them.
    return visible(value).replace("\n", "\\n")


NUMBER = {"type": "number", "minimum": 0, "maximum": LARGEST}
_SIGNED = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}


def or_list(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of such a value or a list of them."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


FINITE = f"finite, 0 or 1e{_LEAST_EXPONENT} to {LARGEST:.0e}, at most {_MOST_DIGITS} digits"
POSITIVE = f"a number of at least 0 ({FINITE})"

# A factor has so many digits behind the point at most: all ticks are multiples of its last one.
_FACTOR_DIGITS = 6
_A_FACTOR = f"a number above 0 and up to 1000 with at most {_FACTOR_DIGITS} digits behind the point"


def _factor(value: object) -> Fraction | None:
    number = _number(value)
    if number is None or not 0 < number <= 1000 or (number * 10**_FACTOR_DIGITS).denominator != 1:
        return None
    return number


def _factors(value: object) -> list[Fraction] | None:
    entries = as_list(value)
    return None if entries is None else _each(_factor, entries, _A_FACTOR)


Text = Annotated[str, field("text", _text), WithJsonSchema({"type": "string"})]
Count = Annotated[
    int, field("a whole number of at least 1", whole_number(1)), WithJsonSchema({"type": "integer", "minimum": 1})
]
Number = Annotated[Fraction, field(POSITIVE, at_least(0)), WithJsonSchema(NUMBER)]
Numbers = Annotated[
    Fraction | list[Fraction],
    field(f"a number of at least 0, or a list of them, one per stage ({FINITE})", one_or_list(at_least(0), POSITIVE)),
    WithJsonSchema(or_list(NUMBER)),
]
NumbersPerDevice = Annotated[
    Fraction | list[Fraction],
    field(f"a number of at least 0, or a list of them, one per device ({FINITE})", one_or_list(at_least(0), POSITIVE)),
    WithJsonSchema(or_list(NUMBER)),
]
NumbersPerDeviceOrStage = Annotated[
    Fraction | list[Fraction],
    field(
        f"a number of at least 0, or a list of them, one per device or stage ({FINITE})",
        one_or_list(at_least(0), POSITIVE),
    ),
    WithJsonSchema(or_list(NUMBER)),
]
Factors = Annotated[
    list[Fraction],
    field(f"a list of factors, one per micro-batch: {_A_FACTOR}", _factors),
    WithJsonSchema(
        {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0, "maximum": 1000}, "minItems": 1}
    ),
]
SignedNumbers = Annotated[
    Fraction | list[Fraction],
    field(f"a number, or a list of them, one per stage ({FINITE})", one_or_list(_number, f"a number ({FINITE})")),
    WithJsonSchema(or_list(_SIGNED)),
]


# What streams and tasks are called: no mark of the schedule file's notation, and no number.
_NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_-]{0,39}"
NAME = {"type": "string", "pattern": f"^{_NAME_PATTERN}$"}
_A_NAME = "a name: a letter or _, then letters, digits, - and _, up to 40 characters"


def task_name(value: object) -> str | None:
    """Accepts what a stream or a task may be called."""
    return value if isinstance(value, str) and re.fullmatch(_NAME_PATTERN, value) else None


Name = Annotated[
    str,
    field(_A_NAME, task_name),
    WithJsonSchema(NAME),
]


def _names(value: object) -> list[str] | None:
    entries = as_list(value)
    return None if entries is None else _each(task_name, entries, _A_NAME)


Names = Annotated[
    list[str],
    field("a list of names", _names),
    WithJsonSchema({"type": "array", "items": NAME, "minItems": 1, "uniqueItems": True}),
]


def _counts(value: object) -> int | list[int] | None:
    entries = as_list(value)
    if entries is None:
        return whole_number(1)(value)
    return _each(whole_number(1), entries, "a whole number of at least 1")


Counts = Annotated[
    int | list[int],
    field("a whole number of at least 1, or a list of them, one per stage", _counts),
    WithJsonSchema(or_list({"type": "integer", "minimum": 1, "maximum": LARGEST})),
]


def one_of(*names: str) -> PlainValidator:
    """A validator for a choice of words."""
    return field(", ".join(names), lambda value: value if isinstance(value, str) and value in names else None)


def _placement(value: object) -> object:
    entries = as_list(value)
    if entries is not None:
        devices = [whole_number(0)(item) for item in entries]
        return devices if devices and None not in devices else None
    return value if isinstance(value, str) and value in PLACEMENTS else None


PlacementField = Annotated[
    str | list[int],
    field(f"{', '.join(PLACEMENTS)}, or a list with the device of each stage", _placement),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(PLACEMENTS)},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        }
    ),
]
