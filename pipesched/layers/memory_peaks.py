"""Measured memory peaks: of each device the layers it holds, how many micro-batches of them, and its peak."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.roles import Role, role_of


class Unknown(NamedTuple):
    """A number to be found: of the layers `layer`, or of devices where that is None.

    `what` is memory, activation or recomputed (the activation kept of a recomputed layer); constant, first or last.
    """

    what: str
    layer: str | None = None

    def __str__(self) -> str:
        if self.layer is None:
            return {"constant": "constant of a device"}.get(self.what, f"extra of the {self.what} device")
        of = {"memory": "memory", "activation": "activation", "recomputed": "recomputed activation"}[self.what]
        return f"{of} of {self.layer}"


@dataclass(frozen=True)
class PeakStage:
    """A stage when its device's memory peaks: layers by name, those of them recomputed, and micro-batches in flight."""

    layers: Mapping[str, int]
    recomputed: Mapping[str, int]
    in_flight: int


@dataclass(frozen=True)
class Peak:
    """Contents of one device's memory at its peak; `place` says where it was measured, for messages."""

    stages: tuple[PeakStage, ...]
    first: bool
    last: bool
    amount: Fraction
    place: str

    def coefficients(self) -> dict[Unknown, int]:
        """The count of each unknown in the peak; embeddings and heads are the first and the last device's extra."""
        found: Counter[Unknown] = Counter({Unknown("constant"): 1})
        found[Unknown("first")] += self.first
        found[Unknown("last")] += self.last
        for stage in self.stages:
            for name, number in stage.layers.items():
                if role_of(name) in (Role.EMBEDDING, Role.HEAD):
                    continue
                again = stage.recomputed.get(name, 0)
                found[Unknown("memory", name)] += number
                found[Unknown("activation", name)] += stage.in_flight * (number - again)
                found[Unknown("recomputed", name)] += stage.in_flight * again
        return {unknown: number for unknown, number in found.items() if number}


@dataclass(frozen=True)
class PeaksFile:
    """The layers whose memory is asked for, with what else is known of them, and the peaks."""

    layers: tuple[LayerType, ...]
    peaks: tuple[Peak, ...]
    unit: str
    name: str
    capacity: tuple[Fraction, ...] | None = None
    timed: bool = True


def unknowns_of(peaks: Sequence[Peak]) -> tuple[Unknown, ...]:
    """All numbers that the peaks depend on, those of layers first, in the order in which they appear."""
    found = {unknown: None for peak in peaks for unknown in peak.coefficients()}
    return tuple(sorted(found, key=lambda unknown: unknown.layer is None))
