"""Plan problems as documents with the keys of a plan file and exact numbers: writing and reading."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.files.problems.document import add_keys
from pipesched.files.schema_errors import shown
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem, choice_from_row

_NUMBER = re.compile(r"-?\d{1,400}(/\d{1,400})?")
# Keys whose values are text even where they look like numbers.
_TEXTS = frozenset({"name", "unit", "time_unit", "on", "placement", "schedule", "objective"})

# Keys that a plan file does not have.
_NOT_OF_FILES = frozenset({"choices", "whole_last", "steps", "parts"})


def plan_document(plan: PlanProblem) -> dict[str, object]:
    """Return a document of a plan problem, with all times and amounts as exact text, such as `5/3`.

    It has the keys of a plan file and some that no file has. `choices` lists the placements allowed. `whole_last` is
    there only if it is True, `memory` only if it is limited. `steps` has the units of time and memory to whose
    multiples numbers are rounded, and in which evidence counts. `parts`, if there are any, are such documents too. Each
    feature writes its own keys.
    """
    model, cluster = plan.model, plan.all_devices
    transfer: object = [list(map(str, row)) for row in cluster.links] or str(cluster.transfer)
    if cluster.transfer_stream is not None:
        both = {"both": True} if cluster.rendezvous else {}
        transfer = {"time": transfer, "on": cluster.transfer_stream, **both}
    layers: Sequence[LayerType] = model.layers
    tick, step = plan.tick, plan.resolution
    for feature in PLAN_FEATURES:
        layers = feature.layers_written(plan, layers)
        finer = feature.finer(plan)
        tick, step = tick * finer[0], step * finer[1]
    document: dict[str, object] = {
        "name": plan.name,
        "devices": cluster.devices,
        "microbatches": plan.microbatches,
        "time_unit": plan.time_unit,
        "layers": list(map(_layer, layers)),
        "partition": list(plan.counts) if plan.counts is not None else "even" if plan.even else "free",
        "schedule": list(plan.schedules) or "free",
        "decide": {"recompute": plan.recompute.value, "recompute_layers": plan.recompute_rule.value},
        "transfer": transfer,
        "objective": plan.objective.name,
        "choices": [[*choice.document().values()] for choice in plan.choices],
        # Evidence counts in these: numbers rounded to multiples of a step may all be multiples of a larger one.
        "steps": {"time": str(tick), "memory": str(step)},
    }
    for feature in PLAN_FEATURES:
        add_keys(document, feature.written(plan, _layer))
    if plan.whole_last:
        document["whole_last"] = True
    if cluster.capacity is not None:
        document["memory"] = {"unit": cluster.memory_unit, "capacity": list(map(str, cluster.capacity))}
    if plan.parts:
        document["parts"] = list(map(plan_document, plan.parts))
    return document


def plan_from_document(document: object, source: str) -> PlanProblem:
    """Read the plan problem from the document of `plan_document`; `BadInput` for mistakes, as for a plan file.

    KeyError, TypeError, ValueError or ArithmeticError where the keys that no plan file has are of another form.
    `source` names the document in messages.
    """
    if not isinstance(document, Mapping):
        return plan_problem_from(document, source)
    exact = _NOT_OF_FILES.union(*(feature.exact_keys for feature in PLAN_FEATURES))
    own = {key: _numbers(value, str(key)) for key, value in document.items() if key not in exact}
    choices = tuple(map(choice_from_row, document["choices"]))
    plan = _in_steps(plan_problem_from(own, source), own, document.get("steps"), source)
    devices = plan.cluster.devices
    for choice in choices:
        choice.on(devices)
    plan = replace(plan, choices=choices, whole_last=document.get("whole_last") is True)
    for feature in PLAN_FEATURES:
        plan = feature.read_back(plan, document)
    # A part has none itself: they are all of one level, however deep a document is.
    parts = ({key: value for key, value in dict(one).items() if key != "parts"} for one in document.get("parts", ()))
    return replace(plan, parts=tuple(plan_from_document(one, source) for one in parts))


def _in_steps(plan: PlanProblem, document: object, steps: Any, source: str) -> PlanProblem:
    """Return the plan problem of a document read with its units of time and memory.

    These are the entries `time` and `memory` of `steps`; `plan` itself if `steps` is None. `plan` is the problem read
    in units of its own; `BadInput` if its numbers are not multiples of the others. `source` names the document in
    messages.
    """
    if steps is None:
        return plan
    known = Fraction(str(steps["time"])), Fraction(str(steps["memory"]))
    if min(known) <= 0:
        raise BadInput(f"{source}: steps: found {shown(steps)}; allowed: numbers above 0")
    found = plan_problem_from(document, source, steps=known)
    if (found.model, found.cluster) != (plan.model, plan.cluster):
        raise BadInput(f"{source}: steps: found {shown(steps)}; allowed: what divides all times, and all memory")
    return found


def _layer(layer: LayerType) -> dict[str, object]:
    times = {"forward": layer.forward, "backward": layer.backward, "weight": layer.weight, "fused": layer.fused}
    amounts = {"memory": layer.memory, "activation": layer.activation, "freed_by_backward": layer.freed_by_backward}
    numbers: dict[str, object] = {**times, **amounts}
    for feature in PLAN_FEATURES:
        numbers |= feature.layer_written(layer)
    modes = [{"name": mode.name, "time": str(mode.time), "keeps": str(mode.keeps)} for mode in layer.recompute]
    given = {key: value if value is True else str(value) for key, value in numbers.items() if value is not None}
    more: dict[str, object] = {"recompute": modes} if modes else {}
    return {"name": layer.name, "count": layer.count, **given, **more, "with_previous": layer.with_previous}


def _numbers(value: Any, key: str) -> Any:
    """Return a document with every text that is a fraction as a `Fraction`, except values of keys that are texts.

    `key` is the key whose value `value` is.
    """
    if isinstance(value, Mapping):
        return {name: _numbers(one, str(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one, key) for one in value]
    if isinstance(value, str) and key not in _TEXTS and _NUMBER.fullmatch(value):
        return Fraction(value)
    return value
