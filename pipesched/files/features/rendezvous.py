"""Transfers that occupy a stream of sender and receiver at once: the key `both` of `times.transfer`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipesched.files.features.catalogue import FEATURES, Feature
from pipesched.files.fields.link_times import is_rendezvous
from pipesched.files.fields.together import Part, Refused, at, given, of_value
from pipesched.problem.problem import Problem
from pipesched.problem.rendezvous import with_receipts, without_receipts

_KEY = "times.transfer.both"


def _meets(document: Mapping[str, Any]) -> bool:
    return at(document, _KEY) is True


def _lower(problem: Problem, form: Any) -> Problem:
    return with_receipts(problem) if form.times is not None and is_rendezvous(form.times.transfer) else problem


def _unlowered(problem: Problem) -> Problem:
    return replace(without_receipts(problem), resources=problem.resources)


_OWN = Part(_KEY, _KEY, _meets)
_REFUSED = (
    Refused(of_value("objective", "period"), _OWN, "makespan or span", "the model starts each task alone"),
    Refused(
        _OWN,
        given("parameters.reduce.buckets"),
        "one of the two",
        "a bucket is a share of tasks",
    ),
)

FEATURES.register(
    Feature(
        name=_KEY,
        lower=_lower,
        unlowered=_unlowered,
        refused=_REFUSED,
        there=lambda problem: problem.resources.rendezvous,
        has_state=False,
    )
)
