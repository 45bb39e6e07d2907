"""Resources of devices: memory of their own, memory of hosts, and streams that several of them share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Pool:
    """The memory of a device, in integers of the problem's `resolution`.

    `capacity` is all of it, None where it is unlimited; `static` is what the device always holds besides what its
    stages do. A capacity below all that is static is a device whose static memory alone is too much.
    """

    capacity: int | None = None
    static: int = 0


class HostPool(NamedTuple):
    """Memory of a host, shared by these devices; `capacity` in the problem's `resolution`, None where unlimited."""

    capacity: int | None
    devices: tuple[int, ...]


class SharedStream(NamedTuple):
    """A stream that these devices have in common: of all their tasks on it one runs at a time."""

    stream: str
    devices: tuple[int, ...]
