"""The registry of partition formats: each writes a partition as one runtime's settings, and reads such settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipesched.registry import Registry
from runtime.partitions.plan_limits import PlanLimits
from runtime.partitions.staged_model import StageCounts, StagedModel


@dataclass(frozen=True)
class PartitionSettings:
    """A partition in one runtime's words.

    `values` are the settings by name, as JSON values. `text` is a file with all of them, comments included. `notes`
    says what the runtime does otherwise than the plan.
    """

    values: Mapping[str, object]
    text: str
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class PartitionFormat:
    """One runtime's settings.

    `write` raises `BadInput` with one line, which begins with the format's name, where the runtime cannot express the
    partition. `read` takes the text of the setting named `main`, the number of devices and that of transformer layers,
    and gives the layers of each stage; `BadInput` with a line for each rule of the runtime that it breaks.
    `suffix` is that of the written file. `limits` says which plans `write` takes, and the orders that the runtime runs.
    """

    name: str
    description: str
    main: str
    suffix: str
    write: Callable[[StagedModel], PartitionSettings]
    read: Callable[[str, int, int], tuple[StageCounts, ...]]
    limits: PlanLimits


PARTITION_FORMATS: Registry[PartitionFormat] = Registry("runtime.partitions", "partition format")
