"""The field for times of overlapped blocks in a problem file: durations, or what a block saves."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, NamedTuple

from pipesched.files.fields.field import (
    FINITE,
    NUMBER,
    POSITIVE,
    WrongEntries,
    WrongEntry,
    at_least,
    field,
    one_or_list,
    or_list,
)

_NUMBERS = f"a number of at least 0, or a list of them, one per stage ({FINITE})"


class Saves(NamedTuple):
    """Time saved by overlapped blocks (`ticks`): one number, or one for each stage, in the file's unit of time.

    A block takes less than its two passes in sequence, by the smaller number of the two passes' stages.
    """

    ticks: Fraction | list[Fraction]


Blocks = Fraction | list[Fraction] | Saves


def _blocks(value: object) -> Blocks | None:
    if not isinstance(value, Mapping):
        return _numbers(value)
    wrong = [WrongEntry(f".{key}", one, "no key but saves") for key, one in value.items() if key != "saves"]
    found: Fraction | list[Fraction] | None = None
    try:
        found = _numbers(value.get("saves"))
        wrong += [WrongEntry(".saves", value.get("saves"), _NUMBERS)] if found is None else []
    except WrongEntries as inside:
        wrong += [entry._replace(place=f".saves{entry.place}") for entry in inside.entries]
    if wrong or found is None:
        raise WrongEntries(wrong)
    return Saves(found)


_numbers = one_or_list(at_least(0), POSITIVE)
BlocksField = Annotated[
    Blocks,
    field(
        f"a number of at least 0, or a list of them, one per stage; or saves, one of these ({FINITE})",
        _blocks,
        {
            "anyOf": [
                *or_list(NUMBER)["anyOf"],
                {
                    "type": "object",
                    "properties": {"saves": or_list(NUMBER)},
                    "required": ["saves"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]
