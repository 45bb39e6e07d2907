"""The kinds of value a problem file holds, each with the sentence that says what is allowed and its JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

# Beyond these a file holds a slip of the keyboard, and exact arithmetic would turn it into a very long wait.
LARGEST = 10**12
MOST_DECIMALS = 15


def _number(value: object) -> Fraction | None:
    """The exact value of a finite number within the limits above; None for anything else."""
    if isinstance(value, float):
        value = Decimal(repr(value))  # only from Python: files are read with exact decimals
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        return None
    if not value:
        return Fraction(0)
    if isinstance(value, Decimal) and not (value.is_finite() and -MOST_DECIMALS <= value.adjusted() <= 18):
        return None
    number = Fraction(value)
    exact = (number * 10**MOST_DECIMALS).denominator == 1
    return number if exact and abs(number) <= LARGEST else None


def _field(allowed: str, accept: Callable[[Any], object]) -> PlainValidator:
    """A validator whose error message is what is allowed; `accept` returns None for what is not."""

    def check(value: object) -> object:
        result = accept(value)
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
        whole = isinstance(value, int) and not isinstance(value, bool) and limit <= value <= LARGEST
        return int(value) if whole else None  # type: ignore[call-overload]

    return accept


def _one_or_list(one: Callable[[object], Fraction | None]) -> Callable[[object], Fraction | list[Fraction] | None]:
    def accept(value: object) -> Fraction | list[Fraction] | None:
        if not isinstance(value, list):
            return one(value)
        numbers = [one(item) for item in value]
        good = [number for number in numbers if number is not None]
        return good if good and len(good) == len(numbers) else None

    return accept


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_NUMBER = {"type": "number", "minimum": 0, "maximum": LARGEST}
_SIGNED = {"type": "number", "minimum": -LARGEST, "maximum": LARGEST}


def _or_list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}


FINITE = f"finite, at most {LARGEST:.0e}, at most {MOST_DECIMALS} decimals"

Text = Annotated[str, _field("text", _text), WithJsonSchema({"type": "string"})]
Count = Annotated[
    int, _field("a whole number of at least 1", _whole(1)), WithJsonSchema({"type": "integer", "minimum": 1})
]
Number = Annotated[Fraction, _field(f"a number of at least 0 ({FINITE})", _at_least(0)), WithJsonSchema(_NUMBER)]
Numbers = Annotated[
    Fraction | list[Fraction],
    _field(f"a number of at least 0, or a list of them, one per stage ({FINITE})", _one_or_list(_at_least(0))),
    WithJsonSchema(_or_list(_NUMBER)),
]
NumbersPerDevice = Annotated[
    Fraction | list[Fraction],
    _field(f"a number of at least 0, or a list of them, one per device ({FINITE})", _one_or_list(_at_least(0))),
    WithJsonSchema(_or_list(_NUMBER)),
]
SignedNumbers = Annotated[
    Fraction | list[Fraction],
    _field(f"a number, or a list of them, one per stage ({FINITE})", _one_or_list(_number)),
    WithJsonSchema(_or_list(_SIGNED)),
]


def one_of(*names: str) -> PlainValidator:
    """A validator for a choice of words."""
    return _field(", ".join(names), lambda value: value if isinstance(value, str) and value in names else None)


PLACEMENTS = ("linear", "interleaved", "v-shape", "wave", "bidirectional")


def _placement(value: object) -> object:
    if isinstance(value, list):
        devices = [_whole(0)(item) for item in value]
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
