"""Blocking transfers, which occupy a stream of sender and receiver at once: the key `both` of `times.transfer`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.files.exact_numbers import as_number, as_numbers
from pipesched.files.features.catalogue import FEATURES, Feature, ProblemForm
from pipesched.files.fields.link_times import is_rendezvous
from pipesched.files.fields.together import Part, Refused, at, more_than_one, of_value
from pipesched.problem.problem import Problem
from pipesched.problem.rendezvous import receives, with_receipts, without_receipts

_KEY = "times.transfer.both"


def _meets(document: Mapping[str, Any]) -> bool:
    return at(document, _KEY) is True


def _lower(problem: Problem, form: ProblemForm) -> Problem:
    return with_receipts(problem) if form.times is not None and is_rendezvous(form.times.transfer) else problem


def _written(problem: Problem) -> dict[str, object]:
    if not receives(problem):
        return {}
    sent, tick = without_receipts(problem), problem.tick
    time: object = [[as_number(lag * tick) for lag in row] for row in sent.links]
    transfer = {"time": time or as_numbers([s.transfer for s in sent.stages], tick)}
    return {"times": {"transfer": transfer | {"on": sent.resources.transfer_stream, "both": True}}}


_OWN = Part(_KEY, _KEY, _meets)
_REFUSED = (
    Refused(of_value("objective", "period"), _OWN, "makespan or span", "the model starts each task alone"),
    Refused(
        _OWN,
        more_than_one("parameters.reduce.buckets"),
        "one of the two",
        "a bucket is a share of tasks",
    ),
)

FEATURES.register(
    Feature(
        name=_KEY,
        lower=_lower,
        unlowered=without_receipts,
        written=_written,
        refused=_REFUSED,
        present_in=receives,
        has_state=False,
    )
)
