"""A cluster: the devices that stages are placed on, their memory, and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from pipesched.problem.quantities import DeviceId

# The whole memory of each device in the file's unit; None where it has no limit.
Capacities = tuple[Fraction | None, ...]


@dataclass(frozen=True)
class Cluster:
    """Devices that run stages, with their memory, speed and links; times are in the file's unit.

    `capacity[d]` is the whole memory of device d, in `memory_unit`; None: no device has a limit. `transfer` is the time
    of one activation or gradient between two devices; if `links` is given, `links[a][b]` is that time from device a to
    device b instead. `transfer_stream` is the stream of the sender that a transfer occupies (None: no stream); with
    `rendezvous` transfers are blocking: each also occupies the receiver's stream of that name at the same time. A layer
    on device d takes `slowness[d]` times its own time, overheads included; `slowness` is empty if all devices have
    speed 1.
    """

    devices: int
    capacity: tuple[Fraction, ...] | None = None
    memory_unit: str = "activations"
    transfer: Fraction = Fraction(0)
    links: tuple[tuple[Fraction, ...], ...] = ()
    transfer_stream: str | None = None
    rendezvous: bool = False
    slowness: tuple[Fraction, ...] = ()

    def slowness_of(self, device: DeviceId) -> Fraction:
        """Return the factor by which a layer takes longer on this device than its own time."""
        return self.slowness[device] if self.slowness else Fraction(1)

    @property
    def speed(self) -> Fraction:
        """The total speed of the devices, where 1 is a device on which a layer takes its own time."""
        return sum((1 / each for each in self.slowness), Fraction(0)) if self.slowness else Fraction(self.devices)

    def reordered(self, order: Sequence[DeviceId]) -> Cluster:
        """Return the cluster of these devices in this order along the pipeline.

        Each has its memory, speed and links. `order[i]` is the index in this cluster of the new one's device i; devices
        may be left out.
        """
        slowness = tuple(self.slowness[device] for device in order) if self.slowness else ()
        return replace(
            self,
            devices=len(order),
            capacity=self.capacity and tuple(self.capacity[device] for device in order),
            links=tuple(tuple(self.links[a][b] for b in order) for a in order) if self.links else (),
            slowness=() if set(slowness) <= {Fraction(1)} else slowness,
        )

    def of_equal(self, devices: int) -> Cluster:
        """Return a cluster of `devices` devices, more or fewer, like those of this one.

        These must have equal memory, speed 1 and no `links`, which is not tested.
        """
        return replace(self, devices=devices, capacity=self.capacity and self.capacity[-1:] * devices)

    @property
    def longest_lag(self) -> Fraction:
        """The longest time of a transfer.

        In the file's unit of time.
        """
        return max((lag for row in self.links for lag in row), default=self.transfer)

    def lag(self, sender: DeviceId, receiver: DeviceId) -> Fraction:
        """Return the time of a transfer from one device to another; 0 within a device.

        In the file's unit of time.
        """
        if sender == receiver:
            return Fraction(0)
        return self.links[sender][receiver] if self.links else self.transfer
