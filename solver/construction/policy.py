"""A policy of the list scheduler: what it prefers of what could run next."""

from __future__ import annotations

from typing import NamedTuple


class Policy(NamedTuple):
    """What a variant of the scheduler prefers."""

    split: bool  # run backwards as B and W
    patience: int  # hundredths of a weight pass that it waits for a gradient or forward to become ready
    later_devices_first: bool  # between devices that could start at the same time
    deepest_first: bool  # between forwards: the stage furthest along, rather than the earliest micro-batch
    blocks: int | None = None  # hundredths of what a block saves that a pass waits for its other pass; None for none
    shares: bool = False  # the stages of a device share its memory by how long they hold an activation
    warm_up: bool = False  # before its first backward a device runs so many forwards as integral warm-up counts
