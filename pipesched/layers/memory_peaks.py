"""Measured memory peaks: for each device its layers, micro-batches in flight, and peak, as equations for a fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from pipesched.layers.layer import LayerType
from pipesched.layers.roles import Role, role_of


class Unknown(NamedTuple):
    """An unknown amount of memory in the fit: of layers named `layer`, or of devices where that is None.

    `what` is, for a layer, memory, activation or recomputed (the activation kept if recomputed); for devices, constant,
    first or last.
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
    """A stage at its device's peak: numbers of its `layers` by name, of the `recomputed` ones, and of micro-batches.

    `in_flight` are the micro-batches whose activations are then in memory.
    """

    layers: Mapping[str, int]
    recomputed: Mapping[str, int]
    in_flight: int


@dataclass(frozen=True)
class Peak:
    """The content of one device's memory at its measured peak, and the peak itself: `amount`, in the file's unit.

    `stages` are those on the device. `first` and `last` are True for the pipeline's first and last device. `place` says
    where the peak was measured, for messages.
    """

    stages: tuple[PeakStage, ...]
    first: bool
    last: bool
    amount: Fraction
    place: str

    def coefficients(self) -> dict[Unknown, int]:
        """Return by unknown how often it is in the peak, without those that are not in it.

        The unknowns `first` and `last` are extra memory of the first and last device, such as of embedding and head,
        whose layers have no unknowns of their own.
        """
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
    """The content of a peaks file: layers whose memory is to be fitted, with their other known costs, and the peaks.

    Amounts are in the unit `unit`. `capacity` is the memory of each device, or one entry for all of them; None if the
    file gives none. `timed` is False if the file lacks some layer's forward or backward time, which is then 0 here.
    """

    layers: tuple[LayerType, ...]
    peaks: tuple[Peak, ...]
    unit: str
    name: str
    capacity: tuple[Fraction, ...] | None = None
    timed: bool = True


def unknowns_of(peaks: Sequence[Peak]) -> tuple[Unknown, ...]:
    """Return all unknowns of the peaks, those of layers first, in order of appearance."""
    found = {unknown: None for peak in peaks for unknown in peak.coefficients()}
    return tuple(sorted(found, key=lambda unknown: unknown.layer is None))
