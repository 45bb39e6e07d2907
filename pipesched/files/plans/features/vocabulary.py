"""The key `vocabulary` of a plan file: embedding and head in stages, split over all devices, or free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    PlanFeature,
    PlanForm,
    Reading,
    WriteLayer,
)
from pipesched.files.plans.module_rules import VOCABULARIES, refused_with_modules
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.roles import Role, role_of
from pipesched.layers.vocabulary import FreeVocabulary, Vocabulary, is_vocabulary, shared_of, sharing


class Keys(Section):
    """The key `vocabulary`: the place of embedding and head."""

    vocabulary: Annotated[str, field_types.one_of(*Vocabulary)] = Field(
        "one", description="embedding and head: in one stage each, shared by all devices, or free"
    )


def _mistakes(form: PlanForm, _choices: Choices, _wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake if a vocabulary that is not in one stage has no layer of its own, or no other layer is there."""
    if form.vocabulary == Vocabulary.ONE or not form.layers:
        return
    own = [is_vocabulary(layer.name or "") for layer in form.layers]
    if all(own) or not any(own):
        yield (
            f"layers: found none but a vocabulary's, or none of these, with vocabulary {form.vocabulary}; "
            "allowed: an embedding, a head, others"
        )


def _plan(plan: PlanProblem, form: PlanForm, _: Reading) -> PlanProblem:
    if form.vocabulary == Vocabulary.FREE:
        return replace(plan, additions=(*plan.additions, FreeVocabulary()))
    return sharing(plan) if form.vocabulary == Vocabulary.SHARED else plan


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    if shared_of(plan):
        return {"vocabulary": Vocabulary.SHARED.value}
    return {"vocabulary": Vocabulary.FREE.value} if FreeVocabulary() in plan.additions else {}


def _layers_written(plan: PlanProblem, layers: Sequence[LayerType]) -> Sequence[LayerType]:
    """Return the layers with embedding before and head after them, where these are split over all devices."""
    shared = shared_of(plan)
    head = [layer for layer in shared if role_of(layer.name) is Role.HEAD]
    return [*(layer for layer in shared if layer not in head), *layers, *head]


def _finer(plan: PlanProblem) -> tuple[int, int]:
    parts = plan.all_devices.devices if shared_of(plan) else 1
    return parts, parts


PLAN_FEATURES.register(
    PlanFeature(
        name="vocabulary",
        keys=Keys,
        refused=tuple(row for one in VOCABULARIES for row in refused_with_modules(one)),
        mistakes=_mistakes,
        plan=_plan,
        written=_written,
        layers_written=_layers_written,
        finer=_finer,
    )
)
