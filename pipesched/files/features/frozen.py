"""Frozen stages: the first stages of every chain, without anything that trains, run forwards alone."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.stage_placement import placement_of
from pipesched.files.fields.together import OVERLAP_NEXT, Part, Refused, at, given, of_value
from pipesched.problem.frozen_stages import with_frozen_stages
from pipesched.problem.problem import Problem

_KEY = "frozen"


class Keys(FeatureKeys):
    """The key `frozen`: the number of stages, at the start of every chain, that run forwards only."""

    frozen: field_types.Natural | None = Field(
        None,
        description="the first stages of every micro-batch that run forwards alone, whatever times and memory "
        "say of their backwards; no gradient is sent to them; default 0",
    )


def _mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake if more stages are frozen than the shortest chain has."""
    if not form.frozen or stages is None or form.devices is None or wrong & {"placement", "chunks", "chains"}:
        return
    most = min(map(len, placement_of(form).chains))
    if form.frozen > most:
        yield f"{_KEY}: found {form.frozen}; allowed: 0 to {most}, the stages that a micro-batch passes"


def _lower(problem: Problem, form: ProblemForm) -> Problem:
    count = form.frozen or 0
    return with_frozen_stages(problem, {s for chain in problem.placement.chains for s in chain[:count]})


def _written(problem: Problem) -> dict[str, object]:
    frozen = [stage for stage in problem.placement.chains[0] if problem.stages[stage].forward_only]
    return {_KEY: len(frozen)} if frozen else {}


_SPANS = "frozen passes end a span when gradients return"
_OWN = Part(_KEY, _KEY, lambda document: bool(at(document, _KEY)))
_EITHER = "one of the two"
_NO_ACTIVATION = "a frozen stage holds no activation to save"
_REFUSED = (
    Refused(of_value("objective", "span"), _OWN, "makespan or period", _SPANS),
    Refused(OVERLAP_NEXT, _OWN, _EITHER, _SPANS),
    Refused(given("times.overlapped"), _OWN, _EITHER, "a frozen stage has no backward for a block"),
    Refused(_OWN, given("memory.offload"), _EITHER, _NO_ACTIVATION),
    Refused(_OWN, given("memory.recompute"), _EITHER, _NO_ACTIVATION),
    Refused(
        _OWN,
        given("memory.kept_for_later"),
        _EITHER,
        "no backward frees them",
    ),
)

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        lower=_lower,
        mistakes=_mistakes,
        written=_written,
        refused=_REFUSED,
        in_form=(_KEY,),
        present_in=lambda problem: any(stage.forward_only for stage in problem.stages),
        not_expressible="stages are frozen, and this format runs a backward of every stage",
        runs_in_torch=False,
    )
)
