"""The key `parameters.norm` of a plan file: the norm of all gradients, with the keys that problem files have for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pipesched.files.features.catalogue import FEATURES
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, PlanFeature, PlanForm, Reading, WriteLayer
from pipesched.layers.gradient_norm import GradientNorm
from pipesched.layers.plan_problem import PlanProblem

_OF_PROBLEMS = FEATURES["parameters.norm"]


def _section(form: PlanForm) -> Any:
    return getattr(form.parameters, "norm", None)


def _plan(plan: PlanProblem, form: PlanForm, reading: Reading) -> PlanProblem:
    own = _section(form)
    if own is None:
        return plan
    return replace(plan, additions=(*plan.additions, GradientNorm(own.on, reading.rounding.time(own.time))))


def _norm_of(plan: PlanProblem) -> GradientNorm | None:
    return next((one for one in plan.additions if isinstance(one, GradientNorm)), None)


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    norm = _norm_of(plan)
    return {} if norm is None else {"parameters": {"norm": {"time": str(norm.time), "on": norm.stream}}}


def _settings_note(plan: PlanProblem) -> str:
    """Return a note if steps wait for the norm, which runtimes take where they clip gradients; else empty text."""
    if _norm_of(plan) is None:
        return ""
    return "in the plan every step waits for the norm of all gradients; these settings do not clip them: the job must"


PLAN_FEATURES.register(
    PlanFeature(
        name="parameters.norm",
        sections=_OF_PROBLEMS.sections,
        with_units=_OF_PROBLEMS.with_units,
        mistakes=lambda form, _choices, wrong: _OF_PROBLEMS.mistakes(form, None, wrong),
        times=lambda form: iter(() if _section(form) is None else (_section(form).time or Fraction(0),)),
        plan=_plan,
        written=_written,
        settings_note=_settings_note,
    )
)
