"""The transfer time of a gradient, which is 0 to a stage before the first one that trains."""

from __future__ import annotations

from typing import Protocol

from pipesched.problem.quantities import Ticks


class Receiver(Protocol):
    """A stage that may receive gradients, of a problem or of a file."""

    @property
    def forward_only(self) -> bool:
        """True if the stage is before the first one that trains and gets no gradient."""


def gradient_lag(receiver: Receiver, ticks: Ticks) -> Ticks:
    """Return the ticks until a gradient arrives at `receiver`: `ticks`, or 0 if none is sent to it."""
    return 0 if receiver.forward_only else ticks
