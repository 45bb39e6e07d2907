"""Checks of `parameters.holders`, which concern the chains and the placement too."""

from __future__ import annotations

from collections.abc import Iterator

from pipesched.files.problems.schema import ProblemFile
from pipesched.files.problems.stage_placement import placement_of
from pipesched.files.schema_errors import shown


def holder_mistakes(form: ProblemFile, stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each: a holder holds its own parameters, and is on the device of the stage."""
    holders = form.parameters.holders if form.parameters else None
    if holders is None or wrong & {"parameters.holders", "chains", "placement"}:
        return
    if not form.chains:
        yield "parameters.holders: found without chains; allowed: with chains"
        return
    if stages is None:
        return
    if len(holders) != stages or max(holders) >= stages:
        yield f"parameters.holders: found {shown(holders)}; allowed: {stages} stages of 0 to {stages - 1}"
        return
    devices = placement_of(form).stage_device
    for stage, holder in enumerate(holders):
        if holders[holder] != holder or devices[holder] != devices[stage]:
            same = [n for n, own in enumerate(devices) if own == devices[stage] and holders[n] == n] or [stage]
            allowed = " or ".join(map(str, same))
            yield f"parameters.holders: found {holder} for stage {stage}; allowed: {allowed}, holders on its device"
