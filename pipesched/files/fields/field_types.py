"""The field types of a problem file, each with its error message and JSON Schema."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import PlainValidator, WithJsonSchema

from pipesched.files.fields.field import (
    FINITE,
    NUMBER,
    PLAIN_NUMBER,
    POSITIVE,
    as_list,
    at_least,
    each_of,
    field,
    finite_number,
    one_or_list,
    or_list,
    or_unit,
    whole_number,
)
from pipesched.files.limits import LARGEST
from pipesched.problem.formatting import visible
from pipesched.problem.placement import PLACEMENTS

SIGNED = or_unit({"type": "number", "minimum": -LARGEST, "maximum": LARGEST})


def _text(value: object) -> str | None:
    # Half of a character of two code units can be read from JSON, and written nowhere.
    if not isinstance(value, str) or re.search("[\\ud800-\\udfff]", value):
        return None
    # Labels reach terminals, pictures and pages: escaped here, they are harmless in all of them.
    return visible(value).replace("\n", "\\n")


# A factor has so many digits behind the point at most: all ticks are multiples of its last one.
_FACTOR_DIGITS = 6
_A_FACTOR = f"a number above 0 and up to 1000 with at most {_FACTOR_DIGITS} digits behind the point"


def _factor(value: object) -> Fraction | None:
    number = finite_number(value)
    if number is None or not 0 < number <= 1000 or (number * 10**_FACTOR_DIGITS).denominator != 1:
        return None
    return number


def _factors(value: object) -> list[Fraction] | None:
    entries = as_list(value)
    return None if entries is None else each_of(_factor, entries, _A_FACTOR)


Text = Annotated[str, field("text", _text), WithJsonSchema({"type": "string"})]
Count = Annotated[
    int, field("a whole number of at least 1", whole_number(1)), WithJsonSchema({"type": "integer", "minimum": 1})
]
YesOrNo = Annotated[
    bool,
    field("true or false", lambda value: value if isinstance(value, bool) else None),
    WithJsonSchema({"type": "boolean"}),
]
Number = Annotated[Fraction, field(POSITIVE, at_least(0)), WithJsonSchema(NUMBER)]
PlainNumber = Annotated[Fraction, field(POSITIVE, at_least(0)), WithJsonSchema(PLAIN_NUMBER)]
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
        {
            "type": "array",
            "items": or_unit({"type": "number", "exclusiveMinimum": 0, "maximum": 1000}),
            "minItems": 1,
        }
    ),
]
SignedNumbers = Annotated[
    Fraction | list[Fraction],
    field(f"a number, or a list of them, one per stage ({FINITE})", one_or_list(finite_number, f"a number ({FINITE})")),
    WithJsonSchema(or_list(SIGNED)),
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
    return None if entries is None else each_of(task_name, entries, _A_NAME)


Names = Annotated[
    list[str],
    field("a list of names", _names),
    WithJsonSchema({"type": "array", "items": NAME, "minItems": 1, "uniqueItems": True}),
]


def _counts(value: object) -> int | list[int] | None:
    entries = as_list(value)
    if entries is None:
        return whole_number(1)(value)
    return each_of(whole_number(1), entries, "a whole number of at least 1")


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
