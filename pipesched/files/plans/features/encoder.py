"""The section `encoder` of a plan file: layers whose output the model's first stage needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.link_times import latency_of
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.together import Part, Refused, given
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    PlanFeature,
    PlanForm,
    Reading,
    WriteLayer,
)
from pipesched.files.plans.module_rules import ENCODER, VOCABULARIES, refused_with_modules
from pipesched.layers.encoder import Encoder, EncoderPlacement, encoder_of
from pipesched.layers.plan_problem import PlanProblem


def _mistakes(form: PlanForm, _choices: Choices, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes of the section `encoder`: missing keys, and values that its placement does not allow."""
    own = form.encoder
    if own is None or any(path.split(".")[0] == "encoder" for path in wrong):
        return
    yield from own.missing("encoder")
    devices, passes = form.devices or 1, (form.microbatches or 1) // own.serves
    if own.placement in (EncoderPlacement.OWN_DEVICE, EncoderPlacement.FREE):
        capacity = form.memory.capacity if form.memory else None
        rooms = set(capacity) if isinstance(capacity, list) else set()
        if devices < 2 or form.cluster is not None or len(rooms) > 1 or isinstance(latency_of(form.transfer), list):
            yield (
                f"encoder.placement: found {own.placement} with {'one device' if devices < 2 else 'unequal devices'}; "
                "allowed: first-stage, in-the-bubbles, replicated, or several equal devices and links"
            )
    if form.microbatches and form.microbatches % own.serves:
        yield f"encoder.serves: found {own.serves}; allowed: what divides the {form.microbatches} micro-batches"
    elif own.placement in (EncoderPlacement.REPLICATED, EncoderPlacement.FREE) and passes < devices:
        yield f"encoder.serves: found {passes} passes; allowed with {own.placement}: one or more for each device"


def _plan(plan: PlanProblem, form: PlanForm, reading: Reading) -> PlanProblem:
    if form.encoder is None:
        return plan
    free = Encoder(reading.layer(form.encoder.as_layer), form.encoder.serves, EncoderPlacement.FREE)
    return free.placed(replace(plan, additions=(*plan.additions, free)), EncoderPlacement(form.encoder.placement))


def _written(plan: PlanProblem, layer: WriteLayer) -> Mapping[str, object]:
    encoder = encoder_of(plan)
    if encoder is None:
        return {}
    costs = layer(encoder.layer)
    del costs["with_previous"]
    return {"encoder": costs | {"serves": encoder.serves, "placement": encoder.placement.value}}


def _published(document: Mapping[str, Any]) -> bool:
    return document.get("schedule") not in (None, "free")


_SCHEDULE = Part("schedule", "a published schedule", _published)

PLAN_FEATURES.register(
    PlanFeature(
        name="encoder",
        costs_section="encoder",
        with_units={
            **{f"encoder.{key}": QuantityKind.TIME for key in ("forward", "backward", "weight", "fused")},
            **{f"encoder.{key}": QuantityKind.MEMORY for key in ("memory", "activation", "freed_by_backward")},
        },
        refused=(
            *(
                Refused(one, ENCODER, "one", "passes of an encoder and of the vocabulary have no order among them")
                for one in VOCABULARIES
            ),
            Refused(given("batch"), ENCODER, "one of the two", "how its passes share in a batch has no key"),
            Refused(_SCHEDULE, ENCODER, "free", "no published schedule has an encoder"),
            *refused_with_modules(ENCODER),
        ),
        mistakes=_mistakes,
        more_layers=lambda form: iter([("encoder", form.encoder.as_layer)] if form.encoder else []),
        plan=_plan,
        written=_written,
    )
)  # fmt: skip
