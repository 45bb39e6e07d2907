"""The placement that a problem file describes."""

from __future__ import annotations

from dataclasses import replace

from pipesched.files.problems.schema import ProblemFile
from pipesched.problem import placement
from pipesched.problem.placement import FIXED_CHUNKS, Placement


def stage_count(form: ProblemFile) -> int | None:
    """The number of stages; None where the file does not say."""
    if isinstance(form.placement, list):
        return len(form.placement)
    if form.devices is None:
        return None
    return form.devices * FIXED_CHUNKS.get(form.placement, form.chunks or 1)


def placement_of(form: ProblemFile) -> Placement:
    """The device of each stage and the chains of stages, as the file gives them."""
    assert form.devices
    if isinstance(form.placement, list):
        found = placement.explicit(form.devices, form.placement)
    else:
        found = placement.PLACEMENTS[form.placement](form.devices, form.chunks or 1)
    chains = tuple(tuple(chain.stages or ()) for chain in form.chains or ())
    return replace(found, name="chains", chains=chains) if chains else found
