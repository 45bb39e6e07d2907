"""The rows of a linear relaxation as evidence names them: what a row states, and the operations that it speaks of."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from pipesched.errors import BadInput
from pipesched.problem.passes import B, F, Pass, W, parse_pass


class RowKind(StrEnum):
    """What a row states. Its operations are F, B and W; B stands for a backward in either mode, BW included."""

    FOLLOWS = "follows"  # the first operation starts once the second has ended, and its tensor arrived
    IDLE = "idle"  # the operation's start is its device's idle time and work before it
    IDLE_GROWS = "idle grows"  # before the first operation a device has idled no less than before the second
    MEMORY = "memory"  # what ran before the operation leaves room for it
    FUSED = "fused"  # if the first, a backward, is fused, the second is not between it and its weight pass
    ENDS = "ends"  # the value is no less than the operation's end, less the begin of its device
    BEGINS = "begins"  # the operation's device begins no later than with it
    IDLED = "idled"  # the idle time of a whole device is no less than that before the operation
    DEVICE = "device"  # the value is no less than idle time and work of the operation's device


# How many operations each speaks of.
_OPERATIONS = {RowKind.FOLLOWS: 2, RowKind.IDLE_GROWS: 2, RowKind.FUSED: 2}


class RowName(NamedTuple):
    """A row; in files as its kind and its operations: `follows F2.1 F1.1`."""

    kind: RowKind
    operations: tuple[Pass, ...]

    def __str__(self) -> str:
        return " ".join([self.kind.value, *map(str, self.operations)])


def parse_row(text: str) -> RowName:
    """Read a row's name back; raises `BadInput` on anything else."""
    for kind in sorted(RowKind, key=lambda kind: -len(kind.value)):
        if text.startswith(f"{kind.value} "):
            operations = tuple(map(parse_pass, text[len(kind.value) + 1 :].split(" ")))
            if len(operations) == _OPERATIONS.get(kind, 1) and all(x.kind in (F, B, W) for x in operations):
                return RowName(kind, operations)
    raise BadInput(f"found {text[:40]!r}; allowed: a row's kind and its operations, such as follows F2.1 F1.1")
