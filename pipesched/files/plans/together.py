"""The table of pairs of features that exclude each other in a plan file, for the reader and for the docs page."""

from __future__ import annotations

from pipesched.files.plans.features.catalogue import PLAN_FEATURES

REFUSED = tuple(row for feature in PLAN_FEATURES for row in feature.refused)
