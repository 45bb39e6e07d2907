"""The types of fields in problem and plan files, each with its error message and JSON Schema."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pipesched.files.fields.field import (
    FINITE,
    NUMBER,
    PLAIN_NUMBER,
    POSITIVE,
    as_list,
    at_least,
    field,
    finite_number,
    list_of,
    one_or_list,
    or_list,
    or_unit,
    whole_number,
)
from pipesched.files.limits import LARGEST
from pipesched.problem.formatting import visible
from pipesched.problem.placement import PLACEMENTS

A_COUNT = "a whole number of at least 1"
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


Text = Annotated[str, field("text", _text, {"type": "string"})]
Count = Annotated[int, field(A_COUNT, whole_number(1), {"type": "integer", "minimum": 1})]
Natural = Annotated[int, field("a whole number of at least 0", whole_number(0), {"type": "integer", "minimum": 0})]
YesOrNo = Annotated[
    bool, field("true or false", lambda value: value if isinstance(value, bool) else None, {"type": "boolean"})
]
Number = Annotated[Fraction, field(POSITIVE, at_least(0), NUMBER)]
PlainNumber = Annotated[Fraction, field(POSITIVE, at_least(0), PLAIN_NUMBER)]
Numbers = Annotated[
    Fraction | list[Fraction],
    field(
        f"a number of at least 0, or a list of them, one per stage ({FINITE})",
        one_or_list(at_least(0), POSITIVE),
        or_list(NUMBER),
    ),
]
NumbersPerDevice = Annotated[
    Fraction | list[Fraction],
    field(
        f"a number of at least 0, or a list of them, one per device ({FINITE})",
        one_or_list(at_least(0), POSITIVE),
        or_list(NUMBER),
    ),
]
NumbersPerDeviceOrStage = Annotated[
    Fraction | list[Fraction],
    field(
        f"a number of at least 0, or a list of them, one per device or stage ({FINITE})",
        one_or_list(at_least(0), POSITIVE),
        or_list(NUMBER),
    ),
]
Factors = Annotated[
    list[Fraction],
    field(
        f"a list of factors, one per micro-batch: {_A_FACTOR}",
        list_of(_factor, _A_FACTOR),
        {
            "type": "array",
            "items": or_unit({"type": "number", "exclusiveMinimum": 0, "maximum": 1000}),
            "minItems": 1,
        },
    ),
]
SignedNumbers = Annotated[
    Fraction | list[Fraction],
    field(
        f"a number, or a list of them, one per stage ({FINITE})",
        one_or_list(finite_number, f"a number ({FINITE})"),
        or_list(SIGNED),
    ),
]


# What streams and tasks are called: no mark of the schedule file's notation, and no number.
_NAME_PATTERN = "[A-Za-z_][A-Za-z0-9_-]{0,39}"
NAME = {"type": "string", "pattern": f"^{_NAME_PATTERN}$"}
_A_NAME = "a name: a letter or _, then letters, digits, - and _, up to 40 characters"


def task_name(value: object) -> str | None:
    """Return a valid name of a stream or task as it is; None for anything else."""
    return value if isinstance(value, str) and re.fullmatch(_NAME_PATTERN, value) else None


Name = Annotated[str, field(_A_NAME, task_name, NAME)]


Names = Annotated[
    list[str],
    field(
        "a list of names",
        list_of(task_name, _A_NAME),
        {"type": "array", "items": NAME, "minItems": 1, "uniqueItems": True},
    ),
]


Counts = Annotated[
    int | list[int],
    field(
        "a whole number of at least 1, or a list of them, one per stage",
        one_or_list(whole_number(1), A_COUNT),
        or_list({"type": "integer", "minimum": 1, "maximum": LARGEST}),
    ),
]


def one_of(*names: str) -> field:
    """Return a validator of a pydantic field that accepts exactly the given names."""
    accept = lambda value: value if isinstance(value, str) and value in names else None  # noqa: E731
    return field(", ".join(names), accept, {"enum": list(map(str, names))})


def _placement(value: object) -> object:
    entries = as_list(value)
    if entries is not None:
        devices = [whole_number(0)(item) for item in entries]
        return devices if devices and None not in devices else None
    return value if isinstance(value, str) and value in PLACEMENTS else None


PlacementField = Annotated[
    str | list[int],
    field(
        f"{', '.join(PLACEMENTS)}, or a list with the device of each stage",
        _placement,
        {
            "anyOf": [
                {"enum": list(PLACEMENTS)},
                {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1},
            ]
        },
    ),
]


def _stages(value: object) -> list[int] | None:
    numbers = [whole_number(0)(entry) for entry in as_list(value) or ()]
    found = [number for number in numbers if number is not None]
    return found if found and len(found) == len(numbers) else None


StageNumbers = Annotated[
    list[int],
    field("a list of stages", _stages, {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}),
]
