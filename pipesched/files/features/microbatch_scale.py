"""Unequal micro-batches: a factor on the times and activations of each; their order is fixed or free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from pipesched.files.exact_numbers import as_number
from pipesched.files.features.catalogue import FEATURES, Feature, FeatureKeys
from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.together import Part, Refused, at, given, more_than_one, of_value
from pipesched.problem.problem import Problem
from pipesched.problem.rescale import with_microbatch_scale

_KEY = "microbatch_scale"


class Keys(FeatureKeys):
    """The keys `microbatch_scale`, a factor for each micro-batch, and `microbatch_order`, if their order is free."""

    microbatch_scale: field_types.Factors | None = Field(
        None, description="a factor on all times and activations of each micro-batch; default: all are alike"
    )
    microbatch_order: Annotated[Literal["fixed", "free"], field_types.one_of("fixed", "free")] = Field(
        "fixed", description="whether unequal micro-batches keep their order on every stage"
    )


def _mistakes(form: Keys, _stages: int | None, _wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake unless there is one factor for each micro-batch; factors that are all 1 are ignored."""
    scale = form.microbatch_scale
    if scale is None or set(scale) == {1}:
        return
    if form.microbatches is not None and len(scale) != form.microbatches:
        yield f"{_KEY}: found {len(scale)} values; allowed: a list of {form.microbatches}, one per micro-batch"


def _lower(problem: Problem, form: Keys) -> Problem:
    return with_microbatch_scale(problem, form.microbatch_scale or (), form.microbatch_order == "fixed")


def _written(problem: Problem) -> dict[str, object]:
    if not problem.walks.scale:
        return {}
    scale = [as_number(scale) for scale in problem.walks.scale]
    return {_KEY: scale, "microbatch_order": "fixed" if problem.walks.queues else "free"}


def _unequal(document: Mapping[str, Any]) -> bool:
    return any(one != 1 for one in as_list(document.get(_KEY)) or ())


def _differ_by_direction(document: Mapping[str, Any]) -> bool:
    """Return True if the transfer time from some device to another differs from that in the other direction.

    False for times that are no square matrix.
    """
    own = at(document, "times.transfer.time")
    rows = [as_list(row) or [] for row in as_list(at(document, "times.transfer") if own is None else own) or ()]
    places = range(len(rows))
    square = all(len(row) == len(rows) for row in rows)
    return square and any(rows[a][b] != rows[b][a] for a in places for b in places)


_OWN = Part(_KEY, _KEY, _unequal)
_EITHER = "one of the two"
_ONE_CHAIN = "such micro-batches are chains already"
_PAIR = "a block has one time for all micro-batches"
_TWO_TIMES = Part("times.transfer", "transfers of two times between two devices", _differ_by_direction)
_NO_STEADY_STATE = "makespan or span"
_REFUSED = (
    *(
        Refused(_OWN, other, _EITHER, _ONE_CHAIN)
        for other in (more_than_one("sequence_chunks"), *map(given, ("modules", "chains", "pipelines")))
    ),
    Refused(given("times.overlapped"), _OWN, _EITHER, _PAIR),
    Refused(_OWN, _TWO_TIMES, "one both ways", "micro-batches are chains with one time for both ways"),
    Refused(_OWN, given("parameters"), _EITHER, "what runs once an iteration belongs to no micro-batch"),
    Refused(of_value("objective", "period"), _OWN, _NO_STEADY_STATE, "no part of such a schedule repeats"),
)

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        lower=_lower,
        mistakes=_mistakes,
        written=_written,
        refused=_REFUSED,
        with_units={_KEY: QuantityKind.SHARE},
        in_form=(_KEY, "microbatch_order"),
        present_in=lambda problem: bool(problem.walks.scale),
        not_expressible="the micro-batches are unequal, and this format is for micro-batches of one shape",
        has_state=False,
        runs_in_torch=False,
    )
)
