"""The section `parameters` of a plan file: what every stage adds to the keys of its layers; reading and writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from pydantic import Field

from pipesched.files.fields import field_types
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
from pipesched.layers.parameters import Collective, Gathering, Parameters
from pipesched.layers.plan_problem import Choice

if TYPE_CHECKING:
    from pipesched.files.plans.schema import PlanFile

# The keys of layers, by what a stage then runs.
OF_LAYERS = {"gather": ("gather", "gathered"), "reduce": ("reduce",), "step": ("step",)}
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


def parameter_mistakes(form: PlanFile, choices: list[Choice], wrong: frozenset[str]) -> Iterator[str]:
    """Yield a line for each broken rule, except of keys already known as wrong."""
    once = ["parameters"] if form.parameters else []
    yield from objective_mistakes(form, once, "makespan or span", wrong)
    yield from none_given(form.parameters, wrong) if form.parameters else ()
    section = form.parameters
    if not any(path.split(".")[0] == "parameters" for path in wrong):
        entries: list[tuple[str, object]] = [(f"layers[{at}]", layer) for at, layer in enumerate(form.layers or ())]
        for place, entry in [*entries, *([("encoder", form.encoder)] if form.encoder else [])]:
            for key, own in OF_LAYERS.items():
                given = [name for name in own if getattr(entry, name)]
                if given and getattr(section, key, None) is None:
                    yield f"{place}.{given[0]}: found without parameters.{key}; allowed: with it"
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


def times_added(section: PlanParametersSection | None) -> list[Fraction]:
    """Return the times that the section adds to every stage; of a reduction in buckets, that of one bucket."""
    own = (getattr(section, key, None) for key in OF_LAYERS)
    return [one.time / getattr(one, "buckets", 1) for one in own if one is not None and one.time is not None]


def buckets_of(section: PlanParametersSection | None) -> int:
    """Return the number of buckets in which gradients are reduced."""
    return section.reduce.buckets if section and section.reduce else 1


def parameters_of(
    section: PlanParametersSection | None, time: Callable[[Fraction], Fraction], memory: Callable[[Fraction], Fraction]
) -> Parameters:
    """Return the `Parameters` of the section; `time` and `memory` round its numbers to the file's units."""
    zero = Fraction(0)
    gather, reduce, step = (getattr(section, key, None) for key in OF_LAYERS)
    return Parameters(
        gather
        and Gathering(
            Collective(gather.on, time(gather.time or zero)),
            memory(gather.memory or zero),
            gather.keep == ALWAYS,
            gather.most,
            gather.window,
            gather.keep == NEVER,
        ),
        reduce
        and Collective(
            reduce.on,
            time((reduce.time or zero) / reduce.buckets) * reduce.buckets,
            reduce.buckets,
            reduce.every == MICROBATCH,
        ),
        None if step is None else time(step.time or zero),
    )


def parameters_document(own: Parameters) -> dict[str, object]:
    """Return the section for `Parameters`, with numbers as fractions; empty where stages run nothing for parameters."""
    found: dict[str, object] = {}
    if (gather := own.gather) is not None:
        rules: dict[str, object] = {"keep": ALWAYS} if gather.once else {}
        rules |= {"keep": {"window": gather.window}} if gather.window else {}
        rules |= {"keep": NEVER} if gather.each_pass else {}
        rules |= {} if gather.most is None else {"most": gather.most}
        found["gather"] = {"time": str(gather.of.time), "on": gather.of.stream, "memory": str(gather.memory)} | rules
    if own.reduce is not None:
        found["reduce"] = {"time": str(own.reduce.time), "on": own.reduce.stream, "buckets": own.reduce.parts}
        found["reduce"] |= {"every": MICROBATCH} if own.reduce.each_microbatch else {}  # type: ignore[operator]
    if own.step is not None:
        found["step"] = {"time": str(own.step)}
    return found
