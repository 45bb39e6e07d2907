"""The lag of a gradient: none is sent to a stage before all that trains."""

from __future__ import annotations

from typing import Protocol


class Receiver(Protocol):
    """A stage, in ticks or in the units of a file."""

    @property
    def forward_only(self) -> bool:
        """True if it is before all that trains."""


def gradient_lag(receiver: Receiver, ticks: int) -> int:
    """Ticks after which a gradient is at its receiver, where sending one takes so many; 0 where none is sent."""
    return 0 if receiver.forward_only else ticks
