"""The registry of partition formats, each of which writes a partition as one runtime's settings, and reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pipesched.registry import Registry
from runtime.partitions.plan_limits import PlanLimits
from runtime.partitions.staged_model import StageCounts, StagedModel


@dataclass(frozen=True)
class PartitionSettings:
    """A partition as settings of one runtime.

    `values` are the settings by name, as JSON values. `text` is a file with all of them, comments included. `notes` say
    where the runtime differs from the plan.
    """

    values: Mapping[str, object]
    text: str
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class PartitionFormat:
    """The format of one runtime's settings.

    `write` raises `BadInput` with one line, beginning with the format's name, if the runtime cannot express the
    partition. `read` takes the text of the setting `main`, the number of devices and the number of transformer layers,
    and returns the layers of each stage, in stage order; it raises `BadInput` with a line for each rule of the runtime
    that is broken. `suffix` is the ending of the written file's name, with its dot. `limits` describes the plans that
    `write` takes, and the orders that the runtime runs.
    """

    name: str
    description: str
    main: str
    suffix: str
    write: Callable[[StagedModel], PartitionSettings]
    read: Callable[[str, int, int], tuple[StageCounts, ...]]
    limits: PlanLimits


PARTITION_FORMATS: Registry[PartitionFormat] = Registry("runtime.partitions", "partition format")
