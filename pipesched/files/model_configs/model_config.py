"""A model configuration of another program, in the keys of a plan file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.schema_errors import shown


@dataclass(frozen=True)
class ModelConfig:
    """`model` has keys of the plan file's section `model`, without sequence and sizes of parallelism.

    `said` is what the source says of training: `sequence`, `microbatch_size`, `devices`, `microbatches`, `tensor`,
    `context`, `expert`, `data`. `longest` is the longest sequence that the model takes, `notes` what was left out.
    """

    name: str
    model: Mapping[str, Any]
    said: Mapping[str, int] = field(default_factory=dict)
    longest: int | None = None
    notes: tuple[str, ...] = ()


class Keys:
    """The values of a configuration, under one of several names each, and the mistakes found among them."""

    def __init__(self, source: str, values: Mapping[str, Any]) -> None:
        self._source, self._values, self.mistakes = source, values, list[str]()

    def number(self, *names: str, default: int | None = None) -> int:
        """A whole number from 1 on; where no name is there the default, or a mistake if there is none."""
        found = self.optional(*names)
        if found is None and default is None:
            self.mistakes.append(f"{self._source}: {names[0]}: missing; it is required")
        return found or default or 1

    def optional(self, *names: str) -> int | None:
        """The number, or None where it is not there, null or 0."""
        for name in names:
            value = self._values.get(name)
            if value is None:
                continue
            try:
                whole = int(str(value))
            except ValueError:
                whole = -1
            if isinstance(value, bool) or whole < 0:
                # A script's option is true where nothing stands behind it.
                found = "no number, or a variable that the script does not set" if value is True else shown(value)
                self.mistakes.append(f"{self._source}: {name}: found {found}; allowed: a whole number of at least 1")
                return 1
            return whole or None
        return None

    def listed(self, name: str) -> list[Any]:
        """The entries of a list; none where it is not there, null, or a mistake."""
        value = self._values.get(name)
        if not isinstance(value, list | None):
            self.mistakes.append(f"{self._source}: {name}: found {shown(value)}; allowed: a list")
        return value if isinstance(value, list) else []

    def check(self) -> None:
        """Raises `BadInput` with all mistakes."""
        if self.mistakes:
            raise BadInput(*self.mistakes)


def without_none(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that have a value."""
    return {key: value for key, value in keys.items() if value is not None}
