"""Base class for sections of a file: a section accepts only its own keys, and some of them are required."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, ConfigDict

# Key paths that are known as wrong, such as `times.forward`, so that checks which need them say nothing more.
WrongPaths: TypeAlias = frozenset[str]


def _state_required(schema: dict[str, Any], model: type[Section]) -> None:
    """Mark the required keys of a section in its JSON Schema, in place, and remove null from what they may be."""
    for key in model.required:
        given = schema["properties"][key]
        given["anyOf"] = [one for one in given["anyOf"] if one != {"type": "null"}]
        del given["default"]
        schema.setdefault("required", []).append(key)


class Section(BaseModel):
    """Base class for sections of a file.

    A field is None where its key is missing or null; the key's description says what that means. Every field is
    optional to pydantic, and `required` lists the keys that must be given, so that all other mistakes are still found
    where one of these is missing.
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, json_schema_extra=_state_required)

    required: ClassVar[tuple[str, ...]] = ()

    def missing(self, place: str) -> Iterator[str]:
        """Yield a mistake for each required key that is missing; `place` is the section's key path."""
        return (f"{place}.{key}: missing; it is required" for key in self.required if getattr(self, key) is None)
