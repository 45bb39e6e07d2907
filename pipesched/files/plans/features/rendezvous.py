"""Transfers that occupy sender and receiver at once (`transfer.both`), and the features that they exclude."""

from __future__ import annotations

from pipesched.files.fields.together import Part, Refused, at, more_than_one, of_value
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature

_BOTH = Part("transfer.both", "transfer.both", lambda document: at(document, "transfer.both") is True)

PLAN_FEATURES.register(
    PlanFeature(
        name="transfer.both",
        refused=(
            Refused(of_value("objective", "period"), _BOTH, "makespan", "the model starts each task alone"),
            Refused(
                _BOTH,
                more_than_one("parameters.reduce.buckets"),
                "one of the two",
                "a bucket is a share of tasks",
            ),
        ),
    )
)
