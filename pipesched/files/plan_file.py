"""Reading of plan files: a model made of layers, and the choices allowed, as a `PlanProblem` of exact numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from math import ceil
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import sizes_of, with_each_size
from pipesched.files.fields.link_times import is_rendezvous, latency_of, links_of, stream_of
from pipesched.files.fields.stage_placement import per
from pipesched.files.fields.together import refused_together
from pipesched.files.file_names import stem_of
from pipesched.files.other_kinds import FileKind, refuse_other_kinds
from pipesched.files.plans.checks import choices_of, plan_mistakes
from pipesched.files.plans.features.catalogue import PLAN_FEATURES, Reading, Rounding, excluded_pairs
from pipesched.files.plans.layers import required_of, with_derived_layers
from pipesched.files.plans.memory_section import PlanMemory
from pipesched.files.plans.schema import LayerEntry, PlanFile
from pipesched.files.plans.units import every_layer, memory_step_of, tick_of
from pipesched.files.problem_file import ROUNDED, read_document
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PLAN
from pipesched.files.rounding import short
from pipesched.files.schema_errors import parse_model
from pipesched.layers.cluster import Cluster
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, mistakes
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.roles import Role, role_of
from pipesched.problem.objective import OBJECTIVES

# Of times, and of memory.
Steps = tuple[Fraction, Fraction]


def read_plan(path: str | Path) -> PlanProblem:
    """Read a YAML or JSON plan file; `BadInput` lists every mistake."""
    return plan_in(read_document(path), path)


def plan_in(document: object, path: str | Path) -> PlanProblem:
    """Return the plan problem of the file at `path` with this content, which is not read again.

    `BadInput` lists every mistake, or says that it is a file of another kind.
    """
    if refuse_other_kinds(document, path, FileKind.PLAN) is FileKind.VISUALISER:
        raise BadInput(f"{path}: found the older visualiser's file, which has no layers; allowed: a plan file")
    return plan_problem_from(document, str(path), stem_of(path))


def read_plan_sizes(path: str | Path) -> list[tuple[PlanProblem, int | None]]:
    """Return (plan problem, sequences of a micro-batch) for each micro-batch size that a plan file lists, in its order.

    A file that lists no sizes gives one problem, with None. `BadInput` lists every mistake.
    """
    document = read_document(path)
    if sizes_of(document, str(path)) is None:
        return [(plan_in(document, path), None)]
    refuse_other_kinds(document, path, FileKind.PLAN)
    return [
        (plan_problem_from(one, str(path), stem_of(path)), sequences)
        for one, sequences in with_each_size(document, str(path))
    ]


def plan_problem_from(
    document: object, source: str = "plan", default_name: str = "plan", steps: Steps | None = None
) -> PlanProblem:
    """Read a plan problem from a dictionary with the keys of a plan file; `BadInput` lists every mistake.

    Where exact sums of the numbers would not fit, times are rounded to the nearest tick and memory down to whole steps,
    with a note. `steps` fixes the tick and the step of memory, in the file's units; None derives them from the numbers.
    `source` names the document in messages; the plan has the name `default_name` if the document gives none.
    """
    try:
        whole = document = in_plain_numbers(document, PLAN)
        for feature in PLAN_FEATURES:
            document = feature.rewritten(document) if isinstance(document, Mapping) else document
        form, found, wrong = parse_model(PlanFile, document, required_of(document))
        filled, broken_rules = with_derived_layers(form, wrong)
        form, found = filled.form, [*found, *broken_rules]
        for feature in PLAN_FEATURES:
            form, mistaken = feature.filled(form, wrong)
            found += mistaken
        found += plan_mistakes(form, wrong)
        if isinstance(whole, Mapping):
            found += [line for feature in PLAN_FEATURES for line in feature.of_document(whole, wrong)]
        found += refused_together(excluded_pairs(), whole, wrong)
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    plan = _build(form, default_name, steps)
    notes = (note for feature in PLAN_FEATURES for note in feature.notes(form))
    plan = replace(plan, assumptions=filled.assumptions, step=filled.step, notes=(*plan.notes, *notes))
    broken = mistakes(plan.model, Partition(plan.counts)) if plan.counts else []
    if broken:
        raise BadInput(*(f"{source}: partition: {mistake}" for mistake in broken))
    return plan


def _build(form: PlanFile, default_name: str, steps: Steps | None) -> PlanProblem:
    """Return the plan problem of a form without mistakes, its numbers rounded to a tick and a step of memory.

    It is called `default_name` if it has no name. `steps` are a given tick and step, None to choose them. Features
    change costs first and add to the problem at the end.
    """
    file = form
    for feature in PLAN_FEATURES:
        form = feature.costs(form)
    assert form.devices and form.microbatches and form.layers
    latency = latency_of(form.transfer)
    lags = [latency] if isinstance(latency, Fraction) else [lag for row in links_of(latency) for lag in row]
    ticks = tick_of(form, lags)
    memory = form.memory or PlanMemory.model_validate({})
    capacity = None if memory.capacity is None else per(memory.capacity, form.devices)
    memory_steps = memory_step_of(form, capacity)
    if steps is not None:
        ticks, memory_steps = (
            own._replace(size=given, rounds=given != own.size)
            for given, own in zip(steps, (ticks, memory_steps), strict=True)
        )
    tick, step = ticks.size, memory_steps.size
    rounded = [*ticks.note("times"), *memory_steps.note("memory")]
    splits, rounding = any(layer.weight is not None for layer in every_layer(form)), Rounding(tick, step)
    reading = Reading(rounding, lambda entry: _layer(entry, form, rounding, splits), file)
    model = Model(tuple(map(reading.layer, form.layers)))
    plan = PlanProblem(
        model,
        _cluster(form, memory.unit, capacity, rounding),
        form.microbatches,
        tuple(choices_of(form)),
        tuple(form.partition) if isinstance(form.partition, list) else None,
        form.partition == "even",
        () if form.schedule == "free" else (form.schedule,) if isinstance(form.schedule, str) else tuple(form.schedule),
        Decide(form.decide.recompute if form.decide else "free"),
        OBJECTIVES[form.objective],
        form.name or default_name,
        form.time_unit,
        tick,
        step,
        (*([ROUNDED.format(" and ".join(rounded))] if rounded else []), *_suspicious(model)),
        recompute_rule=RecomputeRule(form.decide.recompute_layers if form.decide else "any"),
    )
    for feature in PLAN_FEATURES:
        plan = feature.plan(plan, form, reading)
    return plan


def _cluster(form: PlanFile, unit: str, capacity: list[Fraction] | None, rounding: Rounding) -> Cluster:
    """Return the devices of a plan file, with `capacity` by device (None: unlimited) in the memory unit `unit`.

    Times are rounded to the nearest tick, memory down to whole steps.
    """
    assert form.devices
    latency = latency_of(form.transfer)
    return Cluster(
        form.devices,
        None if capacity is None else tuple(map(rounding.amount, capacity)),
        unit,
        rounding.time(latency if isinstance(latency, Fraction) else None),
        tuple(tuple(map(rounding.time, row)) for row in links_of(latency)),
        stream_of(form.transfer),
        rendezvous=is_rendezvous(form.transfer),
    )


def _suspicious(model: Model) -> list[str]:
    """Return a note for each head whose backward is shorter than its forward; such a time is measured wrongly.

    The backward of a matrix product takes at least as long as its forward, so the measurement must have missed a part.
    """
    return [
        f"layers: {one.name}: its backward, {short(one.least_backward)}, is shorter than its forward, "
        f"{short(one.forward)}; a measurement may have lost a part of it"
        for one in model.kinds
        if role_of(one.name) is Role.HEAD and 0 < one.least_backward < one.forward
    ]


def _layer(entry: LayerEntry, form: PlanFile, rounding: Rounding, splits: bool) -> LayerType:
    """Return the layer type of an entry: times rounded to the nearest tick, memory down, but what B frees up.

    This rounding lets whatever fits still fit. If other layers split their backward (`splits`), a layer that does not
    has all of it in B and nothing in W.
    """
    zero, step = Fraction(0), rounding.step
    whole, activation = entry.activation or zero, rounding.amount(entry.activation)
    modes = []
    for mode in entry.recompute or ():
        assert mode.name is not None and mode.keeps is not None
        kept = rounding.amount(whole * mode.keeps)
        modes.append(
            RecomputeMode(mode.name, rounding.time(mode.time), kept / activation if activation else Fraction(1))
        )
    weight, fused = (None if own is None else rounding.time(own) for own in (entry.weight, entry.fused))
    given_back = min(activation, ceil((entry.freed_by_backward or zero) / step) * step)
    if splits and weight is None:
        weight, given_back = zero, activation
    assert entry.name is not None
    return LayerType(
        entry.name,
        rounding.time(entry.forward),
        rounding.time(entry.backward),
        entry.count,
        weight,
        fused,
        rounding.amount(entry.memory),
        activation,
        given_back,
        tuple(modes),
        entry.with_previous,
        **{key: own for feature in PLAN_FEATURES for key, own in feature.layer(entry, form, rounding).items()},
    )
