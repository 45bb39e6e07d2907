"""The `sweep` section of problem and plan files: key paths with lists of values, which the command `sweep` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pipesched.files.fields.field import field

_ONE = {"type": ["number", "string", "boolean", "array", "object"]}
_GROUPS = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _ONE}}


def _sweep(value: object) -> Mapping[Any, object] | None:
    return value if isinstance(value, Mapping) else None


SweepField = Annotated[
    Mapping[Any, object],
    field(
        "fields, each with a list of values, a range such as 4..16, or groups of settings by name",
        _sweep,
        {
            "type": "object",
            "properties": {"same_model": {"type": "boolean"}},
            "additionalProperties": {
                "anyOf": [{"type": "array", "items": _ONE, "minItems": 1}, {"type": ["string", "number"]}, _GROUPS]
            },
        },
    ),
]
