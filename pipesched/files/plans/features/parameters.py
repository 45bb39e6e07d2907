"""The section `parameters` of a plan file: times and memory that every stage has in addition to its layers'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES
from pipesched.files.fields import field_types
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.parameter_sections import (
    ALWAYS,
    MICROBATCH,
    NEVER,
    GatherSection,
    ParametersPart,
    ReduceSection,
    StepSection,
    none_given,
    objective_mistakes,
)
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.files.fields.together import Part, Refused, at, given, more_than_one
from pipesched.files.plans.features.catalogue import (
    PLAN_FEATURES,
    Choices,
    LayerEntry,
    Layers,
    PlanFeature,
    PlanForm,
    Reading,
    Rounding,
    WriteLayer,
)
from pipesched.files.plans.module_rules import MODULES
from pipesched.layers.layer import LayerType
from pipesched.layers.parameters import Collective, Gathering, Parameters
from pipesched.layers.plan_problem import PlanProblem
from pipesched.layers.training_step import TrainingStep
from pipesched.problem.objectives.iteration import ITERATION
from pipesched.problem.objectives.span import SPAN

# The keys of layers, by what a stage then runs.
_OF_LAYERS = {"gather": ("gather", "gathered"), "reduce": ("reduce",), "step": ("step",)}
_ADDED = "what every stage adds to its layers' {}; default 0"


class PlanGatherSection(GatherSection):
    """Gathering the parameters of a stage, which its passes need while they run: an all-gather of shards."""

    time: field_types.Number | None = Field(None, description=_ADDED.format("gather"))
    memory: field_types.Number | None = Field(None, description=_ADDED.format("gathered"))


class PlanReduceSection(ReduceSection):
    """The reduction of a stage's gradients, after its last backward: a reduce-scatter or an all-reduce."""

    required = ()

    time: field_types.Number | None = Field(None, description=_ADDED.format("reduce"))


class PlanStepSection(StepSection):
    """The optimizer's step of a stage, after its reduction, on the first stream."""

    required = ()

    time: field_types.Number | None = Field(None, description=_ADDED.format("step"))


class PlanParametersSection(ParametersPart):
    """Work of every stage for its parameters, once an iteration; its layers say how long."""

    gather: PlanGatherSection | None = Field(None, description="gathering them before they are used")
    reduce: PlanReduceSection | None = Field(None, description="the reduction of its gradients")
    step: PlanStepSection | None = Field(None, description="the optimizer's step")


class Keys(Section):
    """The keys `parameters` and `overlap_next` (a device starts the next iteration before others end this one)."""

    parameters: PlanParametersSection | None = Field(
        None, description="what stages run once an iteration for their parameters; with objective iteration"
    )
    overlap_next: field_types.YesOrNo = Field(
        False, description="with objective iteration: a device begins the next one when its own steps have ended"
    )


class CostKeys(Section):
    """A layer's times and memory for its parameters: gather, reduction and optimizer step, which its stage runs."""

    gather: field_types.Number | None = Field(
        None, description="with parameters.gather: time to gather its parameters; default 0"
    )
    gathered: field_types.Number | None = Field(
        None, description="with parameters.gather: memory of its parameters while gathered; default 0"
    )
    reduce: field_types.Number | None = Field(
        None, description="with parameters.reduce: time to reduce its gradients; default 0"
    )
    step: field_types.Number | None = Field(
        None, description="with parameters.step: time of the optimizer for it; default 0"
    )


def _model_mistakes(form: PlanForm) -> Iterator[str]:
    own = form.parameters
    if own and own.gather:
        yield "parameters.gather: found with model; allowed: with layers, which say what gathering takes"
    if own and own.reduce and form.hardware and form.hardware.data_bandwidth is None:
        yield "parameters.reduce: found with model without hardware.data_bandwidth; allowed: with it"


def _hardware(form: PlanForm) -> Mapping[str, Any]:
    """Return fields of `Hardware` by which no pass hides exchanges, if the plan schedules reductions; else none."""
    return {"data_hidden": 0.0, "gather_hidden": 0.0} if form.parameters and form.parameters.reduce else {}


def _derived(form: PlanForm, layers: Layers, step: TrainingStep) -> tuple[Layers, TrainingStep, list[str]]:
    """Return the layers with times of the reductions and steps that the plan schedules, and the step without these.

    The third value is empty: there are no mistakes.
    """
    zero, own = Fraction(0), form.parameters
    if own and own.step is not None:
        layers = tuple(replace(one, step=step.optimizer.get(one.name, zero)) for one in layers)
        step = replace(step, optimizer={})
    if own and own.reduce is not None:
        layers = tuple(replace(one, reduce=step.reduction.get(one.name, zero)) for one in layers)
        step = replace(step, reduction={})
    return layers, step, []


def _mistakes(form: PlanForm, choices: Choices, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule, except of keys already known as wrong."""
    once = ["parameters"] if form.parameters else []
    yield from objective_mistakes(form, once, "makespan or span", wrong)
    yield from none_given(form.parameters, wrong) if form.parameters else ()
    section = form.parameters
    if not any(path.split(".")[0] == "parameters" for path in wrong):
        entries: list[tuple[str, object]] = [(f"layers[{at}]", layer) for at, layer in enumerate(form.layers or ())]
        for place, entry in [*entries, *(one for feature in PLAN_FEATURES for one in feature.more_layers(form))]:
            for key, own in _OF_LAYERS.items():
                names = [name for name in own if getattr(entry, name)]
                if names and getattr(section, key, None) is None:
                    yield f"{place}.{names[0]}: found without parameters.{key}; allowed: with it"
    reduce = section.reduce if section else None
    if reduce is not None and reduce.every == MICROBATCH and reduce.buckets > 1:
        yield f"parameters.reduce.buckets: found {reduce.buckets} with every microbatch; allowed: 1"
    gather = section.gather if section else None
    if gather is None or gather.most is None or form.devices is None:
        return
    least, where = max(((choice.on(form.devices).stages, str(choice)) for choice in choices), default=(0, ""))
    if gather.most < least:
        yield f"parameters.gather.most: found {gather.most}; allowed: at least {least}, once for every stage ({where})"
    elif gather.keep in (ALWAYS, NEVER):
        found = f"{gather.most} with keep {gather.keep}"
        yield f"parameters.gather.most: found {found}; allowed: with keep free or a window"


def _times(form: PlanForm) -> Iterator[Fraction]:
    """Yield the times that the section adds to every stage, in the file's unit.

    Of a reduction in buckets, one bucket's.
    """
    own = (getattr(form.parameters, key, None) for key in _OF_LAYERS)
    yield from (one.time / getattr(one, "buckets", 1) for one in own if one is not None and one.time is not None)


def _amounts(form: PlanForm) -> Iterator[Fraction]:
    if form.parameters and form.parameters.gather:
        yield form.parameters.gather.memory or Fraction(0)


def _layer_times(entry: LayerEntry, form: PlanForm) -> Iterator[Fraction | None]:
    yield from (entry.gather, entry.reduce and entry.reduce / _buckets_of(form), entry.step)


def _buckets_of(form: PlanForm) -> int:
    """Return the number of buckets in which gradients are reduced."""
    section = form.parameters
    return section.reduce.buckets if section and section.reduce else 1


def _layer(entry: LayerEntry, form: PlanForm, rounding: Rounding) -> Mapping[str, Any]:
    buckets = _buckets_of(form)
    return {
        "gather": rounding.time(entry.gather),
        "gathered": rounding.amount(entry.gathered),
        "reduce": rounding.time((entry.reduce or Fraction(0)) / buckets) * buckets,
        "step": rounding.time(entry.step),
    }


def _plan(plan: PlanProblem, form: PlanForm, reading: Reading) -> PlanProblem:
    """Return the plan problem whose stages run what the section says, with its numbers rounded to the file's units.

    With `overlap_next` the objective becomes the span.
    """
    zero, rounding = Fraction(0), reading.rounding
    gather, reduce, step = (getattr(form.parameters, key, None) for key in _OF_LAYERS)
    own = Parameters(
        gather
        and Gathering(
            Collective(gather.on, rounding.time(gather.time)),
            rounding.amount(gather.memory),
            gather.keep == ALWAYS,
            gather.most,
            gather.window,
            gather.keep == NEVER,
        ),
        reduce
        and Collective(
            reduce.on,
            rounding.time((reduce.time or zero) / reduce.buckets) * reduce.buckets,
            reduce.buckets,
            reduce.every == MICROBATCH,
        ),
        None if step is None else rounding.time(step.time),
    )
    objective = SPAN if form.overlap_next else plan.objective
    return replace(plan, model=replace(plan.model, parameters=own), objective=objective)


def _written(plan: PlanProblem, _: WriteLayer) -> Mapping[str, object]:
    """Return the section with numbers as fractions, and the objective.

    Empty where stages run nothing for parameters.
    """
    own = plan.model.parameters
    found: dict[str, object] = {}
    if (gather := own.gather) is not None:
        rules: dict[str, object] = {"keep": ALWAYS} if gather.once else {}
        rules |= {"keep": {"window": gather.window}} if gather.window else {}
        rules |= {"keep": NEVER} if gather.each_pass else {}
        rules |= {} if gather.most is None else {"most": gather.most}
        found["gather"] = {"time": str(gather.of.time), "on": gather.of.stream, "memory": str(gather.memory)} | rules
    if (reduce := own.reduce) is not None:
        every: dict[str, object] = {"every": MICROBATCH} if reduce.each_microbatch else {}
        buckets: dict[str, object] = {"buckets": reduce.parts} if reduce.parts > 1 else {}
        found["reduce"] = {"time": str(reduce.time), "on": reduce.stream} | buckets | every
    if own.step is not None:
        found["step"] = {"time": str(own.step)}
    if not found:
        return {}
    return {
        "parameters": found, "objective": ITERATION.name, "overlap_next": plan.objective.by_device
    }  # fmt: skip


def _layer_written(layer: LayerType) -> Mapping[str, Any]:
    return {key: value for keys in _OF_LAYERS.values() for key in keys if (value := getattr(layer, key))}


_KEEP = "parameters.gather.keep"
_NEVER = Part(_KEEP, "gather.keep never", lambda document: at(document, _KEEP) == NEVER, NEVER)
_EVERY = "parameters.reduce.every"
_EACH = Part(_EVERY, "reduce.every microbatch", lambda document: at(document, _EVERY) == MICROBATCH, MICROBATCH)
_PIECES = given("sequence_chunks")

PLAN_FEATURES.register(
    PlanFeature(
        name="parameters",
        keys=Keys,
        sections={"costs": CostKeys},
        with_units={
            **FEATURES["parameters"].with_units,
            **{f"costs.{key}": QuantityKind.TIME for key in ("gather", "reduce", "step")},
            "costs.gathered": QuantityKind.MEMORY,
        },
        refused=(
            *(
                Refused(_NEVER, one, "free, always or a window", "passes of pieces and of modules are one task each")
                for one in (_PIECES, *MODULES)
            ),
            Refused(
                _NEVER,
                more_than_one("parameters.reduce.buckets"),
                "free, always or a window",
                "a bucket is a share of tasks",
            ),
            *(
                Refused(_EACH, one, "iteration",
                        "modules run one micro-batch for several of others")
                for one in (_PIECES, *MODULES)
            ),
        ),
        model_mistakes=_model_mistakes,
        hardware=_hardware,
        derived=_derived,
        mistakes=_mistakes,
        times=_times,
        amounts=_amounts,
        layer_times=_layer_times,
        layer_amounts=lambda entry: iter((entry.gathered,)),
        layer=_layer,
        plan=_plan,
        written=_written,
        layer_written=_layer_written,
    )
)  # fmt: skip
