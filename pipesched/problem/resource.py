"""Streams of devices, which tasks occupy."""

from __future__ import annotations

from typing import NamedTuple

from pipesched.problem.quantities import DeviceId


class Resource(NamedTuple):
    """A stream of a device, which runs one task at a time. A stream that devices share belongs to the first of them."""

    device: DeviceId
    stream: str
