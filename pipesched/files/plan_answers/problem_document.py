"""Plan problems as documents with the keys of a plan file and exact numbers, written and read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.plans.parameters import OF_LAYERS, parameters_document
from pipesched.files.schema_errors import shown
from pipesched.layers.cluster import Cluster
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem, placement_from
from pipesched.layers.roles import Role, role_of
from pipesched.layers.vocabulary import Vocabulary
from pipesched.problem.problem import Objective

_NUMBER = re.compile(r"-?\d{1,400}(/\d{1,400})?")
# Keys whose values are text even where they look like numbers.
_TEXTS = frozenset({"name", "unit", "time_unit", "on", "placement", "schedule", "objective"})

# Keys that a plan file does not have.
_NOT_OF_FILES = frozenset({"choices", "whole_last", "clusters", "steps"})


def plan_document(plan: PlanProblem) -> dict[str, object]:
    """Return a plan problem as a document, with numbers as fractions.

    `choices` lists the placements allowed, `clusters` the orders of devices allowed; `whole_last` is there only if it
    is true. `steps` gives the units of time and memory that evidence counts in, to whose multiples numbers are rounded.
    """
    model, cluster = plan.model, plan.all_devices
    transfer: object = [list(map(str, row)) for row in cluster.links] or str(cluster.transfer)
    if cluster.transfer_stream is not None:
        transfer = {"time": transfer, "on": cluster.transfer_stream}
    document: dict[str, object] = {
        "name": plan.name,
        "devices": cluster.devices,
        "microbatches": plan.microbatches,
        "time_unit": plan.time_unit,
        "layers": [_layer(layer) for layer in _with_vocabulary(model.layers, plan.shared)],
        "stage_overhead": {"forward": str(model.forward_overhead), "backward": str(model.backward_overhead)},
        "partition": list(plan.counts) if plan.counts is not None else "even" if plan.even else "free",
        "schedule": list(plan.schedules) or "free",
        "decide": {"recompute": plan.recompute.value, "recompute_layers": plan.recompute_rule.value},
        "transfer": transfer,
        "objective": plan.objective.value,
        "choices": [[*choice][: 2 if choice.pieces == 1 else None] for choice in plan.choices],
    }
    # Evidence counts in these: numbers rounded to multiples of a step may all be multiples of a larger one.
    parts = cluster.devices if plan.shared else 1
    tick = parts * plan.tick * lcm(*(each.denominator for each in cluster.slowness))
    document["steps"] = {"time": str(tick), "memory": str(parts * plan.resolution)}
    counts = sorted({choice.pieces for choice in plan.choices})
    if counts != [1]:
        lengths = sorted({choice.lengths.value for choice in plan.choices if choice.pieces > 1})
        document["sequence_chunks"] = {"count": counts, "lengths": lengths[0] if len(lengths) == 1 else "free"}
    if own := parameters_document(model.parameters):
        over = {"objective": Objective.ITERATION.value, "overlap_next": plan.objective.by_device}
        document |= {"parameters": own} | over
    if plan.shared or plan.either_vocabulary:
        document["vocabulary"] = (Vocabulary.SHARED if plan.shared else Vocabulary.FREE).value
    if plan.clusters:
        document["clusters"] = [[name, _of_devices(one)] for name, one in plan.clusters]
    if plan.encoder is not None:
        costs = _layer(plan.encoder.layer)
        del costs["with_previous"]
        document["encoder"] = costs | {"serves": plan.encoder.serves, "placement": plan.encoder.placement.value}
    if plan.whole_last:
        document["whole_last"] = True
    if cluster.slowness:
        document["cluster"] = [{"devices": 1, "speed": str(1 / each)} for each in cluster.slowness]
    if cluster.capacity is not None:
        document["memory"] = {"unit": cluster.memory_unit, "capacity": list(map(str, cluster.capacity))}
    return document


def plan_from_document(document: object, source: str) -> PlanProblem:
    """Read the plan problem from the document of `plan_document`; `BadInput` for mistakes, as for a plan file."""
    if not isinstance(document, Mapping):
        return plan_problem_from(document, source)
    own = {key: _numbers(value, str(key)) for key, value in document.items() if key not in _NOT_OF_FILES}
    keys = ("placement", "chunks", "sequence_chunks", "lengths")
    choices = tuple(placement_from(dict(zip(keys, one, strict=False))) for one in document["choices"])
    plan = _in_steps(plan_problem_from(own, source), own, document.get("steps"), source)
    devices = plan.cluster.devices
    for choice in choices:
        choice.on(devices)
    orders = tuple((str(name), _with_devices(plan.cluster, own)) for name, own in document.get("clusters", ()))
    return replace(plan, choices=choices, whole_last=document.get("whole_last") is True, clusters=orders)


def _in_steps(plan: PlanProblem, document: object, steps: Any, source: str) -> PlanProblem:
    """Return the plan problem with the document's units of time and memory.

    All its numbers must be multiples of them.
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


def _of_devices(cluster: Cluster) -> dict[str, object]:
    """Return the keys of a cluster that depend on the order of its devices: capacity, slowness and links."""
    capacity = None if cluster.capacity is None else list(map(str, cluster.capacity))
    slowness, links = list(map(str, cluster.slowness)), [list(map(str, row)) for row in cluster.links]
    return {"capacity": capacity, "slowness": slowness, "links": links}


def _with_devices(cluster: Cluster, document: Any) -> Cluster:
    """Return the cluster with capacity, slowness and links from a document of `_of_devices`."""
    capacity, slowness, *links = (
        tuple(Fraction(str(one)) for one in row or ())
        for row in (document["capacity"], document["slowness"], *document["links"])
    )
    return replace(cluster, capacity=capacity or None, slowness=slowness, links=tuple(links))


def _with_vocabulary(layers: Sequence[LayerType], shared: Sequence[LayerType]) -> list[LayerType]:
    """Return the layers with the embedding before them and the head after them, where these are split over all
    devices."""
    head = [layer for layer in shared if role_of(layer.name) is Role.HEAD]
    return [*(layer for layer in shared if layer not in head), *layers, *head]


def _layer(layer: LayerType) -> dict[str, object]:
    times = {"forward": layer.forward, "backward": layer.backward, "weight": layer.weight, "fused": layer.fused}
    amounts = {"memory": layer.memory, "activation": layer.activation, "freed_by_backward": layer.freed_by_backward}
    pieces = {key: getattr(layer, key) for key in ("attention", "attention_backward", "kept_for_later")}
    own = {key: value for keys in OF_LAYERS.values() for key in keys if (value := getattr(layer, key))}
    numbers = times | amounts | (pieces if any(pieces.values()) else {}) | own
    ways = [{"name": way.name, "time": str(way.time), "keeps": str(way.keeps)} for way in layer.recompute]
    given = {key: str(value) for key, value in numbers.items() if value is not None}
    more: dict[str, object] = {"recompute": ways} if ways else {}
    more |= {"frozen": True} if layer.forward_only else {}
    return {"name": layer.name, "count": layer.count, **given, **more, "with_previous": layer.with_previous}


def _numbers(value: Any, key: str) -> Any:
    """Convert every text in a document that is a fraction to a `Fraction`, except values of keys that are texts.

    `key` is the key whose value this is.
    """
    if isinstance(value, Mapping):
        return {name: _numbers(one, str(name)) for name, one in value.items()}
    if isinstance(value, list):
        return [_numbers(one, key) for one in value]
    if isinstance(value, str) and key not in _TEXTS and _NUMBER.fullmatch(value):
        return Fraction(value)
    return value
