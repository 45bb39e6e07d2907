"""The placement that a problem file describes, device of each stage and chains of stages, and a number for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

from pipesched.problem import placement
from pipesched.problem.placement import FIXED_CHUNKS, Placement


class _Chain(Protocol):
    stages: list[int] | None


class _Form(Protocol):
    """The keys of a problem file that describe its placement."""

    devices: int | None
    placement: str | list[int]
    chunks: int | None

    @property
    def chains(self) -> Sequence[_Chain] | None: ...


def stage_count(form: _Form) -> int | None:
    """Return the number of stages that a file describes; None where it does not say.

    A stage that two devices run, as in a bidirectional placement, counts twice.
    """
    if isinstance(form.placement, list):
        return len(form.placement)
    if form.devices is None:
        return None
    return form.devices * FIXED_CHUNKS.get(form.placement, form.chunks or 1)


def placement_of(form: _Form) -> Placement:
    """Return the placement that a file's keys describe, with its chains.

    The number of devices must be known, and the keys valid.
    """
    assert form.devices
    if isinstance(form.placement, list):
        found = placement.explicit(form.devices, form.placement)
    else:
        found = placement.PLACEMENTS[form.placement](form.devices, form.chunks or 1)
    chains = tuple(tuple(chain.stages or ()) for chain in form.chains or ())
    return replace(found, name="chains", chains=chains) if chains else found


def per(value: Fraction | list[Fraction] | None, count: int) -> list[Fraction]:
    """Return one number for each of `count` stages or devices from `value`, a number for all or a list; not None.

    A list of fewer entries is repeated: one of half as many, for one direction of a bidirectional placement, for the
    other.
    """
    assert value is not None
    if isinstance(value, list):
        return value * (count // len(value))
    return [value] * count
