"""The key `stage_overhead` of a plan file: time that every stage adds to each of its passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm, Reading
from pipesched.layers.plan_problem import PlanProblem


class OverheadSection(Section):
    """Time that every stage adds to each of its passes, whatever layers it has."""

    forward: field_types.Number | None = Field(None, description="to a forward; default 0")
    backward: field_types.Number | None = Field(None, description="to a backward (B or BW); default 0")


class Keys(Section):
    """The key `stage_overhead`: time that every stage adds to each of its passes."""

    stage_overhead: OverheadSection | None = None


def _times(form: PlanForm) -> Iterator[Fraction]:
    own = form.stage_overhead
    yield from () if own is None else (own.forward or Fraction(0), own.backward or Fraction(0))


def _plan(plan: PlanProblem, form: PlanForm, reading: Reading) -> PlanProblem:
    forward, backward = map(reading.rounding.time, _times(form) if form.stage_overhead else (None, None))
    return replace(plan, model=replace(plan.model, forward_overhead=forward, backward_overhead=backward))


PLAN_FEATURES.register(
    PlanFeature(
        name="stage_overhead",
        keys=Keys,
        with_units={"stage_overhead": QuantityKind.TIME},
        times=_times,
        plan=_plan,
        written=lambda plan, _: {
            "stage_overhead": {
                "forward": str(plan.model.forward_overhead), "backward": str(plan.model.backward_overhead)
            }
        },
    )
)  # fmt: skip
