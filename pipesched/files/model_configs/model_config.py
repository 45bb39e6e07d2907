"""The model and training settings of another program's configuration, in the keys of a plan file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.overlap_options import Hidden
from pipesched.files.schema_errors import shown


@dataclass(frozen=True)
class ModelConfig:
    """The model of another program's configuration, and its training settings.

    `model` has keys of a plan file's section `model`, without sequence and sizes of parallelism. `settings` has the
    settings that the source gives of `sequence`, `microbatch_size`, `devices`, `microbatches`, `tensor`, `context`,
    `expert` and `data`. `longest` is the longest sequence, in tokens, that the model takes, None if the source does not
    say; `notes` name what was left out. `fsdp`: the program that trains it uses PyTorch's own layers, sharding and
    recomputation; `reduction_bytes`: bytes of a number as its sharded gradients are reduced, None if the source does
    not say. `hidden` has shares of exchange that computation hides, where the source's options decide them.
    """

    name: str
    model: Mapping[str, Any]
    settings: Mapping[str, int] = field(default_factory=dict)
    longest: int | None = None
    notes: tuple[str, ...] = ()
    fsdp: bool = False
    reduction_bytes: int | None = None
    hidden: Hidden = field(default_factory=dict)


class Keys:
    """Access to whole numbers of a configuration, as numbers or text, each under the first given of several names.

    0 and null count as missing. A wrong value, or none where one is required, is read as 1 and added to `mistakes`,
    with which `check` raises `BadInput`.
    """

    def __init__(self, source: str, values: Mapping[str, Any]) -> None:
        self.source, self._values, self.mistakes = source, values, list[str]()

    def number(self, *names: str, default: int | None = None) -> int:
        """Return the whole number, at least 1, under the first of `names` that is given, else `default`.

        A wrong value, or a missing one without a `default`, is added to the mistakes, and 1 returned.
        """
        found = self.optional(*names)
        if found is None and default is None:
            self.mistakes.append(f"{self.source}: {names[0]}: missing; it is required")
        return found or default or 1

    def optional(self, *names: str) -> int | None:
        """Return the whole number under the first of `names` that is given; None where it is missing, null or 0.

        A wrong value is added to the mistakes, and 1 returned.
        """
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
                self.mistakes.append(f"{self.source}: {name}: found {found}; allowed: a whole number of at least 1")
                return 1
            return whole or None
        return None

    def listed(self, name: str) -> list[Any]:
        """Return the entries of a list in the configuration; empty where it is missing or null.

        Anything else is added to the mistakes.
        """
        value = self._values.get(name)
        if not isinstance(value, list | None):
            self.mistakes.append(f"{self.source}: {name}: found {shown(value)}; allowed: a list")
        return value if isinstance(value, list) else []

    def check(self) -> None:
        """Raise `BadInput` with all mistakes found, if any."""
        if self.mistakes:
            raise BadInput(*dict.fromkeys(self.mistakes))


def without_none(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys whose value is not None."""
    return {key: value for key, value in keys.items() if value is not None}
