"""Validation of single values of a file: conversion to exact numbers, and messages that say what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, NamedTuple, TypeVar

import numpy as np
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pipesched.files.limits import LARGEST

_LEAST_EXPONENT = -30
_MOST_DIGITS = 100

# A number with a unit or %, as text: `80 GB`, `300 us`, `40%`; and a fraction that no decimal is: `5/3`.
QUANTITY = r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%|[A-Za-z\u00b5\u03bc]+)"
FRACTION = rf"[+-]?\d{{1,{_MOST_DIGITS}}}/0*[1-9]\d{{0,{_MOST_DIGITS - 1}}}"
_WITH_UNIT = {"type": "string", "pattern": f"^(?:{QUANTITY}|{FRACTION})$"}


def or_unit(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema that accepts each number that `schema` does, and also text.

    The text is a number with a unit or %, such as "80 GB" or "40%", or a fraction such as "5/3".
    """
    return {"anyOf": [schema, _WITH_UNIT]}


PLAIN_NUMBER: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": LARGEST}
NUMBER = or_unit(PLAIN_NUMBER)


def or_list(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a value of `schema` or of a list of such values, at least one."""
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


FINITE = f"finite, 0 or 1e{_LEAST_EXPONENT} to {LARGEST:.0e}, at most {_MOST_DIGITS} digits"
POSITIVE = f"a number of at least 0 ({FINITE})"

Entry = TypeVar("Entry")


class WrongEntry(NamedTuple):
    """An entry of a value that is not allowed: its place in the value (as `[2]`), the entry, and what is allowed."""

    place: str
    found: object
    allowed: str


class WrongEntries(Exception):
    """Raised by validators of lists; `entries` has a `WrongEntry` for each entry of the value that is not allowed."""

    def __init__(self, entries: list[WrongEntry]) -> None:
        super().__init__()
        self.entries = entries


def finite_number(value: object) -> Fraction | None:
    """Convert a finite number to its exact fraction; None for anything else, such as True or text.

    None also beyond the limits of a file: above 10^12, other than 0 and below 10^-30 in absolute value, or more than
    100 digits. Floats of Python and NumPy, which only callers in code pass, count as the decimal that they print as.
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
    """Return the entries of a list, tuple or NumPy array; None for anything else."""
    if isinstance(value, np.ndarray):
        return list(value) if value.ndim else None
    return list(value) if isinstance(value, list | tuple) else None


@dataclass(frozen=True, eq=False)
class field:  # noqa: N801 - annotates a type, as those of pydantic do
    """A validator for pydantic fields: `accept` returns the converted value, or None for one that is not allowed.

    `allowed` is then the error message; for a list `accept` may raise `WrongEntries` instead. `json_schema` is the JSON
    Schema of the values, None for that of the annotated type.
    """

    allowed: str
    accept: Callable[[Any], object]
    json_schema: Mapping[str, Any] | None = None

    def __get_pydantic_core_schema__(self, *_: object) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self._check)

    def __get_pydantic_json_schema__(self, *_: object) -> dict[str, Any]:
        return dict(self.json_schema or {})

    def _check(self, value: object) -> object:
        try:
            result = self.accept(value)
        except WrongEntries as wrong:
            context = {"allowed": self.allowed, "entries": wrong.entries}
            raise PydanticCustomError("not_allowed", "{allowed}", context) from None
        if result is None:
            raise PydanticCustomError("not_allowed", "{allowed}", {"allowed": self.allowed})
        return result


def at_least(limit: int) -> Callable[[object], Fraction | None]:
    """Return a validator that makes numbers from `limit` to 10^12, both included, exact fractions.

    The validator returns None for others.
    """

    def accept(value: object) -> Fraction | None:
        number = finite_number(value)
        return number if number is not None and number >= limit else None

    return accept


def whole_number(limit: int) -> Callable[[object], int | None]:
    """Return a validator that accepts whole numbers from `limit` to 10^12, both included, but no True and no 1.0.

    The validator returns the int, None for others.
    """

    def accept(value: object) -> int | None:
        whole = isinstance(value, Integral) and not isinstance(value, bool) and limit <= int(value) <= LARGEST
        return int(value) if whole else None  # type: ignore[call-overload]

    return accept


def one_or_list(one: Callable[[object], Entry | None], allowed: str) -> Callable[[object], Entry | list[Entry] | None]:
    """Return a validator that accepts one value or a list of values, each of which the validator `one` converts.

    The validator returns the value or the list converted; None for a single value that `one` does not accept, or an
    empty list. It raises `WrongEntries`, with all of them, if `one` does not accept some entries of a list; `allowed`
    is what each entry may be, for the message. Tuples and NumPy arrays are lists, too.
    """
    many = list_of(one, allowed)
    return lambda value: one(value) if as_list(value) is None else many(value)


def list_of(one: Callable[[object], Entry | None], allowed: str) -> Callable[[object], list[Entry] | None]:
    """Return a validator that accepts a list of values, each of which the validator `one` converts.

    The validator returns the entries converted; None for no list or an empty one. It raises `WrongEntries`, with all of
    them, if `one` does not accept some entries; `allowed` is what each entry may be, for the message. Tuples and NumPy
    arrays are lists, too.
    """

    def accept(value: object) -> list[Entry] | None:
        entries = as_list(value)
        return None if entries is None else each_of(one, entries, allowed)

    return accept


def each_of(one: Callable[[object], Entry | None], entries: list[object], allowed: str) -> list[Entry] | None:
    """Return every entry converted by `one`; None for an empty list.

    Raises `WrongEntries` with all entries that `one` refuses. `allowed` is what each entry may be, for the message.
    """
    accepted = [one(item) for item in entries]
    wrong = [at for at, entry in enumerate(accepted) if entry is None]
    if wrong:
        raise WrongEntries([WrongEntry(f"[{at}]", entries[at], allowed) for at in wrong])
    return [entry for entry in accepted if entry is not None] or None
