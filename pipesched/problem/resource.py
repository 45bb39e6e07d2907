"""Streams of devices, which tasks occupy."""

from __future__ import annotations

from typing import NamedTuple


class Resource(NamedTuple):
    """A stream of a device, which runs one task at a time; a shared stream has the first of its devices."""

    device: int
    stream: str
