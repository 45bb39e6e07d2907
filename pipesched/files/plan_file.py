"""Reading of plan files: a model made of layers, and the choices allowed, as a `PlanProblem` of exact numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, lcm
from pathlib import Path

from pipesched.errors import BadInput
from pipesched.files.batch_sizes import sizes_of, with_each_size
from pipesched.files.fields.link_times import latency_of, links_of, stream_of
from pipesched.files.fields.together import refused_together
from pipesched.files.other_kinds import Kind, refuse_other_kinds
from pipesched.files.plans.batch import batch_mistakes, with_batch
from pipesched.files.plans.checks import choices_of, plan_mistakes
from pipesched.files.plans.device_classes import orders_of, slowness_of, with_device_classes
from pipesched.files.plans.frozen import adapter_rank, frozen_names, notes_on_frozen, with_frozen_layers
from pipesched.files.plans.layers import required_of, with_derived_layers
from pipesched.files.plans.parameters import buckets_of, parameters_of, times_added
from pipesched.files.plans.schema import LayerEntry, OverheadSection, PlanFile, PlanMemory
from pipesched.files.plans.together import REFUSED
from pipesched.files.plans.units import every_layer, memory_step_of, tick_of
from pipesched.files.problem_file import ROUNDED, read_document
from pipesched.files.problems import visualiser_file
from pipesched.files.problems.times_in_ticks import per
from pipesched.files.quantities import in_plain_numbers
from pipesched.files.quantity_forms import PLAN
from pipesched.files.rounding import short
from pipesched.files.schema_errors import parse_model
from pipesched.layers.cluster import Cluster
from pipesched.layers.encoder import Encoder, EncoderPlacement
from pipesched.layers.layer import LayerType, RecomputeMode
from pipesched.layers.model import Model
from pipesched.layers.partition import Partition, mistakes
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.layers.roles import Role, role_of
from pipesched.layers.vocabulary import Vocabulary
from pipesched.problem.problem import Objective

# Of times, and of memory.
Steps = tuple[Fraction, Fraction]


def read_plan(path: str | Path) -> PlanProblem:
    """Read a YAML or JSON plan file; `BadInput` lists every mistake."""
    document = read_document(path)
    if visualiser_file.looks_like_one(document):
        raise BadInput(f"{path}: found the older visualiser's file, which has no layers; allowed: a plan file")
    refuse_other_kinds(document, path, Kind.PLAN)
    return plan_problem_from(document, str(path), Path(path).stem)


def read_plan_sizes(path: str | Path) -> list[tuple[PlanProblem, int | None]]:
    """Read a plan file as one plan problem for each micro-batch size that it lists, with the sequences of a
    micro-batch.

    A file that lists no sizes gives one problem.
    """
    document = read_document(path)
    if sizes_of(document, str(path)) is None:
        return [(read_plan(path), None)]
    refuse_other_kinds(document, path, Kind.PLAN)
    return [
        (plan_problem_from(one, str(path), Path(path).stem), sequences)
        for one, sequences in with_each_size(document, str(path))
    ]


def plan_problem_from(
    document: object, source: str = "plan", default_name: str = "plan", steps: Steps | None = None
) -> PlanProblem:
    """Read a plan problem from a dictionary with the keys of a plan file; `BadInput` lists every mistake.

    `steps` fixes the units of time and memory to which numbers are rounded; None derives them from the numbers.
    """
    try:
        whole = in_plain_numbers(document, PLAN)
        document = with_batch(whole)
        form, found, wrong = parse_model(PlanFile, document, required_of(document))
        filled, broken_rules = with_derived_layers(form, wrong)
        form, of_classes = with_device_classes(filled.form, wrong)
        found += [*broken_rules, *of_classes, *plan_mistakes(form, wrong)]
        found += [*batch_mistakes(whole, wrong), *refused_together(REFUSED, whole, wrong)]
    except BadInput as error:
        raise BadInput(*(f"{source}: {mistake}" for mistake in error.mistakes)) from None
    if found:
        raise BadInput(*(f"{source}: {mistake}" for mistake in found))
    notes = notes_on_frozen(form)
    plan = _build(with_frozen_layers(form), default_name, steps)
    plan = replace(plan, assumptions=filled.assumptions, step=filled.step, notes=(*plan.notes, *notes))
    plan = replace(plan, frozen=frozen_names(form), adapter_rank=adapter_rank(form))
    broken = mistakes(plan.model, Partition(plan.counts)) if plan.counts else []
    if broken:
        raise BadInput(*(f"{source}: partition: {mistake}" for mistake in broken))
    return plan


def _build(form: PlanFile, default_name: str, steps: Steps | None) -> PlanProblem:
    assert form.devices and form.microbatches and form.layers
    latency, overhead = latency_of(form.transfer), form.stage_overhead or OverheadSection.model_validate({})
    more = [overhead.forward or Fraction(0), overhead.backward or Fraction(0)]
    lags = [latency] if isinstance(latency, Fraction) else [lag for row in links_of(latency) for lag in row]
    tick, times_rounded = tick_of(form, [*more, *times_added(form.parameters), *lags])
    memory = form.memory or PlanMemory.model_validate({})
    capacity = None if memory.capacity is None else per(memory.capacity, form.devices)
    step, memory_rounded = memory_step_of(form, capacity)
    if steps is not None:
        (tick, times_rounded), (step, memory_rounded) = (
            (new, new != old) for new, old in zip(steps, (tick, step), strict=True)
        )
    rounded = [f"times to multiples of {short(tick)}"] if times_rounded else []
    rounded += [f"memory to multiples of {short(step)}"] if memory_rounded else []
    cluster = _cluster(form, memory.unit, capacity, tick, step)
    splits = any(layer.weight is not None for layer in every_layer(form))
    encoder = None
    if entry := form.encoder:
        layer = _layer(entry.as_layer, tick, step, splits, buckets_of(form.parameters))
        encoder = Encoder(layer, entry.serves, EncoderPlacement(entry.placement))
    own = parameters_of(form.parameters, lambda time: _whole(time, tick), lambda amount: floor(amount / step) * step)
    layers = tuple(_layer(layer, tick, step, splits, buckets_of(form.parameters)) for layer in form.layers)
    forward, backward = (_whole(time, tick) for time in more)
    model = Model(layers, forward, backward, own)
    plan = PlanProblem(
        model,
        cluster,
        form.microbatches,
        tuple(choices_of(form)),
        tuple(form.partition) if isinstance(form.partition, list) else None,
        form.partition == "even",
        () if form.schedule == "free" else (form.schedule,) if isinstance(form.schedule, str) else tuple(form.schedule),
        Decide(form.decide.recompute if form.decide else "free"),
        Objective.SPAN if form.overlap_next else Objective(form.objective),
        form.name or default_name,
        form.time_unit,
        # A layer takes whole ticks on every device.
        tick / lcm(*(each.denominator for each in cluster.slowness)),
        step,
        (*([ROUNDED.format(" and ".join(rounded))] if rounded else []), *_suspicious(model)),
        recompute_rule=RecomputeRule(form.decide.recompute_layers if form.decide else "any"),
        clusters=orders_of(form, cluster),
        either_vocabulary=form.vocabulary == Vocabulary.FREE,
        encoder=encoder,
    )
    if encoder:
        return plan.placing_encoder(encoder.placement)
    return plan.sharing_vocabulary() if form.vocabulary == Vocabulary.SHARED else plan


def _cluster(form: PlanFile, unit: str, capacity: list[Fraction] | None, tick: Fraction, step: Fraction) -> Cluster:
    """Return the devices of a plan file; times are rounded to the nearest tick, memory down to a multiple of `step`."""
    assert form.devices
    latency = latency_of(form.transfer)
    return Cluster(
        form.devices,
        None if capacity is None else tuple(floor(room / step) * step for room in capacity),
        unit,
        _whole(latency, tick) if isinstance(latency, Fraction) else Fraction(0),
        tuple(tuple(_whole(lag, tick) for lag in row) for row in links_of(latency)),
        stream_of(form.transfer),
        slowness_of(form.cluster),
    )


def _whole(time: Fraction, tick: Fraction) -> Fraction:
    return round(time / tick) * tick


def _suspicious(model: Model) -> list[str]:
    """Return a note if the head's backward is shorter than its forward.

    The backward of a matrix product takes at least as long as its forward, so the measurement must have missed a part.
    """
    return [
        f"layers: {one.name}: its backward, {short(one.least_backward)}, is shorter than its forward, "
        f"{short(one.forward)}; a measurement may have lost a part of it"
        for one in model.kinds
        if role_of(one.name) is Role.HEAD and 0 < one.least_backward < one.forward
    ]


def _layer(entry: LayerEntry, tick: Fraction, step: Fraction, splits: bool, buckets: int = 1) -> LayerType:
    """Return the layer type of an entry. Times are rounded to the nearest tick, activations down, memory that B frees
    up.

    This rounding lets whatever fits still fit. If other layers split their backward (`splits`), a layer that does not
    has all of it in B and nothing in W.
    """

    def time(number: Fraction | None) -> Fraction:
        assert number is not None
        return _whole(number, tick)

    zero = Fraction(0)
    whole = entry.activation or zero
    activation = floor(whole / step) * step
    ways = []
    for way in entry.recompute or ():
        assert way.name is not None and way.keeps is not None
        kept = floor(whole * way.keeps / step) * step
        ways.append(RecomputeMode(way.name, time(way.time), kept / activation if activation else Fraction(1)))
    weight, fused = (None if own is None else time(own) for own in (entry.weight, entry.fused))
    given_back = min(activation, ceil((entry.freed_by_backward or zero) / step) * step)
    if splits and weight is None:
        weight, given_back = zero, activation
    assert entry.name is not None
    return LayerType(
        entry.name,
        time(entry.forward),
        time(entry.backward),
        entry.count,
        weight,
        fused,
        floor((entry.memory or zero) / step) * step,
        activation,
        given_back,
        tuple(ways),
        entry.with_previous,
        entry.attention,
        entry.attention if entry.attention_backward is None else entry.attention_backward,
        floor((entry.kept_for_later or zero) / step) * step,
        time(entry.gather or zero),
        floor((entry.gathered or zero) / step) * step,
        time((entry.reduce or zero) / buckets) * buckets,
        time(entry.step or zero),
        entry.frozen,
    )
