"""The objective period of a plan (a pattern that repeats without end): the features that it excludes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.files.fields.together import Part, Refused, given, of_value
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature
from pipesched.files.plans.module_rules import MODULES


def _published(document: Mapping[str, Any]) -> bool:
    return document.get("schedule") not in (None, "free")


_PERIOD = of_value("objective", "period")
_PATTERNLESS = (
    given("sequence_chunks"),
    *MODULES,
)

PLAN_FEATURES.register(
    PlanFeature(
        name="period",
        refused=(
            Refused(
                _PERIOD,
                Part("schedule", "a published schedule", _published),
                "a free schedule",
                "a pattern of least period may run passes in any order",
            ),
            *(Refused(_PERIOD, one, "makespan or span", "no part of such a schedule repeats") for one in _PATTERNLESS),
        ),
    )
)
