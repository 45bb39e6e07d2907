"""Resources of devices: their own memory, that of hosts, and the streams besides the first, some of them shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.network.task_network import HostMemory, Resource
from pipesched.problem.stage import TaskSpec

# The name of the task that sends a pass's tensor to another device.
SENDING = "transfer"


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


@dataclass(frozen=True)
class DeviceResources:
    """The resources of devices besides their memory and the stream of their passes.

    `streams` are those that every device has, as the user lists them. Where `transfer_stream` is given, a transfer is a
    task of its sender on that stream; else it occupies nothing. `shared_streams` are those that several devices have in
    common. `hosts` are the memory of hosts; a device in none of them has one without limit of its own.
    """

    streams: tuple[str, ...] = ()
    transfer_stream: str | None = None
    shared_streams: tuple[SharedStream, ...] = ()
    hosts: tuple[HostPool, ...] = ()

    def on_device(self, device: int, stream: str) -> Resource:
        """The stream of a device; of one that devices share, that of the first of them."""
        for shared, devices in self.shared_streams:
            if shared == stream and device in devices:
                return Resource(devices[0], stream)
        return Resource(device, stream)

    def sends(self, lag: int) -> bool:
        """True if a tensor that takes so long is sent by a task of its own."""
        return lag > 0 and self.transfer_stream is not None

    def sending(self, lag: int) -> tuple[TaskSpec, ...]:
        """The task that sends a tensor which takes so long, if there is one."""
        return (TaskSpec(str(self.transfer_stream), lag, SENDING),) if self.sends(lag) else ()

    def host_memory(self) -> tuple[HostMemory, ...]:
        """The memory of hosts, as the network has it."""
        return tuple(HostMemory(*host) for host in self.hosts)


# One stream a device, and hosts without limit.
ONE_STREAM = DeviceResources()
