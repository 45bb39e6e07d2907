"""A section of a file: its keys and no others, of which some must be there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict


def _state_required(schema: dict[str, Any], model: type[Section]) -> None:
    """In the JSON Schema, what is required is there and not null."""
    for key in model.required:
        given = schema["properties"][key]
        given["anyOf"] = [one for one in given["anyOf"] if one != {"type": "null"}]
        del given["default"]
        schema.setdefault("required", []).append(key)


class Section(BaseModel):
    """Every field is optional to pydantic, so that all other mistakes are found where a required one is missing."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, json_schema_extra=_state_required)

    required: ClassVar[tuple[str, ...]] = ()

    def missing(self, place: str) -> Iterator[str]:
        """A mistake for each required key that is not there; `place` is the section's path."""
        return (f"{place}.{key}: missing; it is required" for key in self.required if getattr(self, key) is None)
