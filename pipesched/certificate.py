"""A certificate is a lower bound together with the argument that proves it, in words a person can check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """No schedule of the problem is below `value` ticks.

    `kind` names the argument. `device` is the one it speaks of, None if it speaks of the whole.
    """

    kind: str
    value: int
    text: str
    device: int | None = None
