"""The objective free memory of a plan: leave the most memory free on every device, then take the least time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import as_list
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Part, Refused, at
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    PlanFeature,
    PlanForm,
    Reading,
    WriteLayer,
)
from pipesched.files.plans.module_rules import has_modules
from pipesched.layers.plan_problem import Leaves, PlanProblem
from pipesched.layers.roles import Role, role_of

_THEN = ("makespan", "period")


class Keys(Section):
    """The key `then`: the time to minimise among the plans with the most free memory."""

    then: Annotated[str, field_types.one_of(*_THEN)] | None = Field(
        None, description="with objective free_memory or free_memory_per_layer: what to minimise then; default makespan"
    )


def _leaves(form: PlanForm) -> Leaves | None:
    return Leaves(form.objective) if form.objective in [*Leaves] else None


def _mistakes(form: PlanForm, _choices: Choices, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes of the objective free memory and of the key `then`.

    Free memory needs a limit of memory and, per layer, layers with keys and values; `then` needs free memory.
    """
    leaves = _leaves(form)
    if leaves is None:
        if form.then is not None and "objective" not in wrong:
            yield f"then: found with objective {form.objective}; allowed: with free_memory or free_memory_per_layer"
        return
    if (form.memory is None or form.memory.capacity is None) and not any(path.startswith("memory") for path in wrong):
        yield f"objective: found {leaves} without memory.capacity; allowed: with it"
    cached = (role_of(layer.name or "") in (Role.TRANSFORMER, Role.MTP) for layer in form.layers or ())
    if leaves is Leaves.PER_LAYER and form.layers and not any(cached):
        yield f"objective: found {leaves} without a layer that holds keys and values; allowed: free_memory"


def _with_time(form: PlanForm) -> Any:
    """Return the form with the time of `then` as its objective, if the objective is free memory; else itself."""
    return form if _leaves(form) is None else form.model_copy(update={"objective": form.then or _THEN[0]})


def _plan(plan: PlanProblem, _form: PlanForm, reading: Reading) -> PlanProblem:
    return replace(plan, leaves=_leaves(reading.file))


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    return {} if plan.leaves is None else {"objective": plan.leaves.value, "then": plan.objective.name}


def _leaves_memory(document: Mapping[str, Any]) -> bool:
    return document.get("objective") in [*Leaves]


def _published(document: Mapping[str, Any]) -> bool:
    return document.get("schedule") not in (None, "free")


def _clusters_open(document: Mapping[str, Any]) -> bool:
    """Return True if the order of devices is free, or a class has a range of numbers."""
    classes = as_list(document.get("cluster")) or ()
    ranges = any(isinstance(one, Mapping) and isinstance(one.get("devices"), str) for one in classes)
    return bool(ranges or at(document, "decide.cluster") == "free")


def _shares_memory(document: Mapping[str, Any]) -> bool:
    return document.get("sequence_chunks") is not None or has_modules(document)


_OWN = Part("objective", "objective free_memory", _leaves_memory, "free_memory")
_WITH = (
    (Part("schedule", "a published schedule", _published), "any order", "one at a time leaves the most"),
    (Part("cluster", "several sets or orders of devices", _clusters_open), "one", "they are compared by time"),
    (
        Part("empty_stages", "empty_stages", lambda document: document.get("empty_stages") is True),
        "false",
        "its search has a layer on every stage",
    ),
    (Part("model", "pieces, encoder or shared vocabulary", _shares_memory), "none", "their memory is not of one stage"),
)

PLAN_FEATURES.register(
    PlanFeature(
        name="free_memory",
        keys=Keys,
        mistakes=_mistakes,
        costs=_with_time,
        plan=_plan,
        written=_written,
        refused=tuple(Refused(_OWN, other, allowed, why) for other, allowed, why in _WITH),
    )
)
