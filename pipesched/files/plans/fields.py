"""The field types that only a plan file has: placements, chunks, partitions, schedules, speeds and shares."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Annotated

from pipesched.files.fields.field import (
    as_list,
    at_least,
    field,
    list_of,
    or_list,
    or_unit,
    whole_number,
)
from pipesched.files.fields.field_types import A_COUNT
from pipesched.problem.placement import PLACEMENTS


def _share(value: object) -> Fraction | None:
    number = at_least(0)(value)
    return number if number is not None and number <= 1 else None


# A speed has so many digits behind the point at most: ticks are multiples of its last one.
_SPEED_DIGITS, _FASTEST = 3, 10
_A_SPEED = f"a number above 0 and up to {_FASTEST} with at most {_SPEED_DIGITS} digits behind the point"


def _speed(value: object) -> Fraction | None:
    number = at_least(0)(value)
    exact = number is not None and (number * 10**_SPEED_DIGITS).denominator == 1
    return number if number and number <= _FASTEST and exact else None


def _placements(value: object) -> object:
    if as_list(value) is None:
        return value if isinstance(value, str) and value in (*PLACEMENTS, "free") else None
    return _each_once(value, lambda one: str(one) if one in list(PLACEMENTS) else None, ", ".join(PLACEMENTS))


def _each_once(value: object, one: Callable[[object], str | None], allowed: str) -> list[str] | None:
    return list(dict.fromkeys(list_of(one, allowed)(value) or ())) or None


_whole_numbers = list_of(whole_number(1), A_COUNT)
_counts = list_of(whole_number(0), "a whole number of at least 0")


def counts_of(value: object) -> list[int] | None:
    """Return a whole number of at least 1, or a list of them, as a list; None for any other value and an empty list.

    `WrongEntries` for a list with other entries.
    """
    one = whole_number(1)(value)
    return _whole_numbers(value) if one is None else [one]


def _partition(value: object) -> object:
    return value if isinstance(value, str) and value in ("free", "even") else _counts(value)


def _schedules(value: object) -> object:
    if as_list(value) is None:
        return value if isinstance(value, str) else None
    return _each_once(value, lambda one: one if isinstance(one, str) else None, "a name")


_MODE = "[A-Za-z_][A-Za-z0-9_+-]{0,79}"


def _mode(value: object) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(_MODE, value) else None


_WHOLE = {"type": "integer", "minimum": 1}

SpeedField = Annotated[
    Fraction,
    field(
        _A_SPEED,
        _speed,
        {"type": "number", "exclusiveMinimum": 0, "maximum": _FASTEST, "multipleOf": 10**-_SPEED_DIGITS},
    ),
]
ShareField = Annotated[
    Fraction, field("a share from 0 to 1", _share, or_unit({"type": "number", "minimum": 0, "maximum": 1}))
]
ModeField = Annotated[
    str,
    field(
        "a name: a letter or _, then letters, digits, -, _ and + between modules, up to 80 characters",
        _mode,
        {"type": "string", "pattern": f"^{_MODE}$"},
    ),
]
PlacementsField = Annotated[
    str | list[str],
    field(
        f"free, {', '.join(PLACEMENTS)}, or a list of these names",
        _placements,
        {
            "anyOf": [
                {"enum": ["free", *PLACEMENTS]},
                {"type": "array", "items": {"enum": list(PLACEMENTS)}, "minItems": 1},
            ]
        },
    ),
]
ChunksField = Annotated[
    list[int], field("a whole number of at least 1, or a list of them to choose from", counts_of, or_list(_WHOLE))
]
PartitionField = Annotated[
    str | list[int],
    field(
        "free, even, or a list with the number of layers of each stage",
        _partition,
        {"anyOf": [{"enum": ["free", "even"]}, {"type": "array", "items": _WHOLE | {"minimum": 0}, "minItems": 1}]},
    ),
]
SchedulesField = Annotated[
    str | list[str],
    field("free, the name of a published schedule, or a list of such names", _schedules, or_list({"type": "string"})),
]
