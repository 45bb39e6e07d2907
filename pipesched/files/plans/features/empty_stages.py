"""Stages without a layer in a plan: they pass activations and gradients on."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm, Reading
from pipesched.layers.plan_problem import PlanProblem


class Keys(Section):
    """The key `empty_stages`: True if a plan may have stages without a layer."""

    empty_stages: field_types.YesOrNo = Field(
        False, description="stages may have no layer: they pass activations and gradients on, and add their overhead"
    )


def _plan(plan: PlanProblem, form: PlanForm, _: Reading) -> PlanProblem:
    return replace(plan, model=replace(plan.model, empty_stages=form.empty_stages))


PLAN_FEATURES.register(
    PlanFeature(
        name="empty_stages",
        keys=Keys,
        plan=_plan,
        written=lambda plan, _: {"empty_stages": True} if plan.model.empty_stages else {},
    )
)
