"""Resources of devices: device memory, host memory, and streams other than the compute stream, some of them shared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pipesched.problem.network.task_network import Reservoir, Resource
from pipesched.problem.quantities import DeviceId, MemorySteps, Ticks
from pipesched.problem.stage import TaskSpec

# The name of the task that sends a pass's tensor to another device.
SENDING = "transfer"


@dataclass(frozen=True)
class Pool:
    """The memory of a device, in units of the problem's `resolution`.

    `capacity` is the whole memory, None where unlimited; `static` is memory always in use in addition to its stages'
    static memory. If the capacity is smaller than all static memory, nothing fits on the device.
    """

    capacity: MemorySteps | None = None
    static: MemorySteps = 0


class HostPool(NamedTuple):
    """The memory of a host shared by `devices`; `capacity` in the problem's `resolution`, None where unlimited."""

    capacity: MemorySteps | None
    devices: tuple[DeviceId, ...]


class SharedStream(NamedTuple):
    """A stream that several devices share: it runs one task of all of them at a time."""

    stream: str
    devices: tuple[DeviceId, ...]


@dataclass(frozen=True)
class DeviceResources:
    """Resources of devices other than device memory and the compute stream.

    `streams` are those that every device has, in the user's order. A transfer is a task of its sender on
    `transfer_stream`; where that is None, it occupies nothing. `shared_streams` are streams common to several devices.
    `hosts` are the limited host memories; a device in none of them has unlimited host memory of its own.
    """

    streams: tuple[str, ...] = ()
    transfer_stream: str | None = None
    shared_streams: tuple[SharedStream, ...] = ()
    hosts: tuple[HostPool, ...] = ()

    def on_device(self, device: DeviceId, stream: str) -> Resource:
        """Return a stream of a device as a resource.

        A stream shared by several devices is the resource of the first of them.
        """
        for shared, devices in self.shared_streams:
            if shared == stream and device in devices:
                return Resource(devices[0], stream)
        return Resource(device, stream)

    def occupied(self, device: DeviceId, task: TaskSpec) -> tuple[Resource, ...]:
        """Return the resources that a task occupies while it runs, for a stage on this device.

        The task's stream is the first.
        """
        where = (Resource(device, task.stream), *task.also)
        return tuple(dict.fromkeys(self.on_device(*one) for one in where))

    def sends(self, lag: Ticks) -> bool:
        """Return True if a transfer of `lag` ticks is a task on the transfer stream."""
        return lag > 0 and self.transfer_stream is not None

    def sending(self, lag: Ticks) -> tuple[TaskSpec, ...]:
        """Return the task that sends a tensor for `lag` ticks, as a tuple.

        Empty if transfers occupy no stream, or take no time.
        """
        return (TaskSpec(str(self.transfer_stream), lag, SENDING),) if self.sends(lag) else ()

    def host_memory(self, devices: Iterable[DeviceId]) -> tuple[Reservoir, ...]:
        """Return the host memories that the passes of these devices use.

        First come those in `hosts`, in that order, then an unlimited one for each device in none of them, ascending.
        """
        using = set(devices)
        alone = sorted(using.difference(*(host.devices for host in self.hosts)))
        shared = (Reservoir(*host) for host in self.hosts if using.intersection(host.devices))
        return (*shared, *(Reservoir(None, (device,)) for device in alone))


# One stream a device, and hosts without limit.
ONE_STREAM = DeviceResources()
