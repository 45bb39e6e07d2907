"""The key `parameters`: gathering of a stage's parameters, reduction of its gradients, and its optimizer step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pydantic import Field

from pipesched.files.exact_numbers import as_number
from pipesched.files.features.catalogue import (
    FEATURES,
    Column,
    Columns,
    Feature,
    FeatureKeys,
    ProblemForm,
    first_stream,
)
from pipesched.files.fields import field_types
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.parameter_sections import (
    ALWAYS,
    MICROBATCH,
    NEVER,
    ParametersSection,
    none_given,
)
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.stage_placement import placement_of
from pipesched.files.fields.together import SEVERAL_LAYERS, Part, Refused, at, given, more_than_one, of_value
from pipesched.files.schema_errors import shown
from pipesched.problem.features.gather_each_pass import (
    computing_alone,
    gathering_each_pass,
    gathering_of,
    gathers_each_pass,
)
from pipesched.problem.features.parameters import StageParameters, most_gathers
from pipesched.problem.objectives.iteration import ITERATION
from pipesched.problem.objectives.span import SPAN
from pipesched.problem.passes import REDUCE, STEP
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Gather, Once, TaskSpec

_TIMES = tuple(("parameters", key) for key in ("gather", "reduce", "step"))
MEMORY = ("parameters", "memory")
# The keys of what runs once an iteration, in its order.
_ONCE = (("reduce", REDUCE), ("step", STEP))


class Keys(FeatureKeys):
    """The keys `parameters` and `overlap_next` (a device starts the next iteration before others end this one)."""

    parameters: ParametersSection | None = Field(
        None, description="what stages run once an iteration for their parameters; with objective iteration"
    )
    overlap_next: field_types.YesOrNo = Field(
        False, description="with objective iteration: a device begins the next one when its own steps have ended"
    )


def _per_stage(form: ProblemForm) -> Iterator[tuple[str, object]]:
    yield "parameters.gather.memory", getattr(getattr(form.parameters, "gather", None), "memory", None)
    for key in ("gather", "reduce", "step"):
        yield f"parameters.{key}.time", getattr(getattr(form.parameters, key, None), "time", None)


def _times(form: ProblemForm) -> Iterator[Column]:
    """Yield the durations of gathering, reduction and step as columns, in the file's unit.

    Of a reduction in buckets, that of one bucket.
    """
    section = form.parameters
    for column in _TIMES:
        own = getattr(section, column[1], None)
        if own is not None:
            time, parts = own.time or Fraction(0), getattr(own, "buckets", 1)
            yield column, [each / parts for each in time] if isinstance(time, list) else time / parts


def _memory(form: ProblemForm) -> Iterator[Column]:
    """Yield the memory of gathered parameters as a column in the file's unit: name, one number or one a stage."""
    section = form.parameters
    if section is not None and section.gather is not None:
        yield MEMORY, section.gather.memory or Fraction(0)


def _stages(form: ProblemForm, columns: Columns, count: int) -> dict[str, list[Any]]:
    """Return the fields `gather` and `once` of each of `count` stages, without one that the file does not ask for.

    `gather` is None, and `once` empty, for a stage that uses another's parameters. With `keep: never` there is no
    `gather`: it is a task of every pass.
    """
    section: ParametersSection | None = form.parameters
    if section is None:
        return {}
    found: dict[str, list[Any]] = {}
    for column, _ in _times(form):
        stream = getattr(getattr(section, column[1]), "on", first_stream(form))
        found[column[1]] = [TaskSpec(stream, ticks) for ticks in columns[column]]
    holders = section.holders or [*range(count)]
    own = section.gather
    if own is not None and own.keep == NEVER:
        del found["gather"]  # a task of every pass: see `_lower`
    elif own is not None:
        most = 1 if own.keep == ALWAYS else most_gathers(own.most, form.microbatches or 1, len(set(holders)))
        tasks = zip(found["gather"], columns[MEMORY], strict=True)
        found["gather"] = [Gather(task, memory, most) for task, memory in tasks]
    is_holder = [stage == holder for stage, holder in enumerate(holders)]
    found = {
        key: [one if own else None for one, own in zip(tasks, is_holder, strict=True)] for key, tasks in found.items()
    }
    parts = section.reduce.buckets if section.reduce else 1
    each = section.reduce is not None and section.reduce.every == MICROBATCH
    rows = [
        [task and (Once(kind, task, parts, each) if kind is REDUCE else Once(kind, task)) for task in found.pop(key)]
        for key, kind in _ONCE
        if key in found
    ]
    return found | {"once": [tuple(filter(None, row)) for row in zip(*rows, strict=True)]} if rows else found


def _fields(problem: Problem, form: ProblemForm, columns: Columns) -> dict[str, object]:
    """Return the problem's fields for parameters: limits of gathering, holders, objective of overlapped iterations.

    With `keep: never` the stages are replaced by ones whose passes each start with a gathering. Empty for a file that
    lacks the section `parameters`.
    """
    section: ParametersSection | None = form.parameters
    if section is None:
        return {}
    gather = section.gather
    each_pass: dict[str, object] = {}
    if gather is not None and gather.keep == NEVER:
        holders = section.holders or range(len(problem.stages))
        each_pass["stages"] = tuple(
            gathering_each_pass(stage, gather.on, columns["parameters", "gather"][own], columns[MEMORY][own])
            for stage, own in zip(problem.stages, holders, strict=True)
        )
        if section.reduce is None and section.step is None:
            each_pass["objective"] = problem.objective.of_passes  # nothing runs besides passes of micro-batches
    return each_pass | {
        "parameters": StageParameters(
            tuple(section.holders or ()), gather.most if gather else None, gather.window if gather else None
        ),
        **({"objective": SPAN} if form.overlap_next else {}),
    }


def _gathers(section: ParametersSection, stages: int | None) -> Iterator[str]:
    own = section.gather
    if own is not None and own.most is not None and stages is not None:
        stages = len(set(section.holders)) if section.holders else stages
        if own.most < stages:
            yield f"parameters.gather.most: found {own.most}; allowed: at least {stages}, once for every stage"
        elif own.keep in (ALWAYS, NEVER):
            yield f"parameters.gather.most: found {own.most} with keep {own.keep}; allowed: with keep free or a window"


def _mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a line for each broken rule, except of keys already known as wrong.

    `stages` is the number of stages, None if not known.
    """
    section = form.parameters
    if section is None:
        return
    yield from none_given(section, wrong)
    for key in ("reduce", "step"):
        own = getattr(section, key)
        if own is not None and f"parameters.{key}.time" not in wrong:
            yield from own.missing(f"parameters.{key}")
    yield from _gathers(section, stages)
    if section.reduce and section.reduce.every == MICROBATCH and section.reduce.buckets > 1:
        yield f"parameters.reduce.buckets: found {section.reduce.buckets} with every microbatch; allowed: 1"
    yield from _holder_mistakes(form, stages, wrong)


def _holder_mistakes(form: ProblemForm, stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes of `parameters.holders`: a holder is its own holder, on the device of the stage it serves."""
    holders = form.parameters.holders if form.parameters else None
    if holders is None or wrong & {"parameters.holders", "chains", "placement"}:
        return
    if not form.chains:
        yield "parameters.holders: found without chains; allowed: with chains"
        return
    if stages is None:
        return
    if len(holders) != stages or max(holders) >= stages:
        yield f"parameters.holders: found {shown(holders)}; allowed: {stages} stages of 0 to {stages - 1}"
        return
    devices = placement_of(form).stage_device
    for stage, holder in enumerate(holders):
        if holders[holder] != holder or devices[holder] != devices[stage]:
            same = [n for n, own in enumerate(devices) if own == devices[stage] and holders[n] == n] or [stage]
            allowed = " or ".join(map(str, same))
            yield f"parameters.holders: found {holder} for stage {stage}; allowed: {allowed}, holders on its device"


def parameter_keys(problem: Problem) -> dict[str, object]:
    """Return the key `parameters` as a file writes it for a problem; empty where stages run nothing for parameters.

    Of `gather`, `reduce`, `step` and `holders` only those that it has. Numbers are exact, in the file's units:
    decimals, or text such as `5/3`; a list by stage where stages differ. ValueError where no file can express it.
    """
    stages = problem.stages
    section: dict[str, object] = {}
    if any(stage != holder for stage, holder in enumerate(problem.parameters.holders)):
        if not problem.walks.shares:
            raise ValueError("a problem file has stages with the parameters of others only with chains")
        stages = tuple(problem.stages[holder] for holder in problem.parameters.holders)
        section["holders"] = list(problem.parameters.holders)
    never = gathers_each_pass(problem.stages)
    for key, kind in (("gather", None), *_ONCE):
        runs = [one for stage in stages for one in stage.once if one.kind is kind]
        gathering = [stage.gather and stage.gather.task if not never else gathering_of(stage) for stage in stages]
        own = [one.task for one in runs] if kind else [task for task in gathering if task]
        if (own and len(own) < len(stages)) or len({one.parts for one in runs}) > 1:
            raise ValueError("a problem file has every stage reduce its gradients, and step, alike, or none")
        if len({task.stream for task in own}) > 1:
            raise ValueError("a problem file has what all stages run for their parameters on one stream")
        if own:
            parts = runs[0].parts if runs else 1
            times = [as_number(task.ticks * parts * problem.tick) for task in own]
            section[key] = {"time": times[0] if len(set(times)) == 1 else times}
            section[key] |= {} if key == "step" else {"on": own[0].stream}  # type: ignore[operator]
            section[key] |= {"buckets": parts} if parts > 1 else {}  # type: ignore[operator]
            section[key] |= {"every": MICROBATCH} if runs and runs[0].each_microbatch else {}  # type: ignore[operator]
            section[key] |= {"keep": NEVER} if never and not kind else {}  # type: ignore[operator]
    if not section.keys() - {"holders"}:
        return {}
    gathers = [stage.gather for stage in stages if stage.gather is not None]
    if gathers:
        memory = [as_number(one.memory * problem.resolution) for one in gathers]
        more: dict[str, object] = {"memory": memory[0] if len(set(memory)) == 1 else memory}
        once = problem.parameters.most is None and all(one.most == 1 for one in gathers)
        more |= {"keep": ALWAYS} if once else {}
        more |= {} if problem.parameters.window is None else {"keep": {"window": problem.parameters.window}}
        more |= {} if problem.parameters.most is None else {"most": problem.parameters.most}
        section["gather"] |= more  # type: ignore[operator]
    return {"parameters": section}


def _written(problem: Problem) -> dict[str, object]:
    """Return the keys of a problem with parameters, including its objective; empty for a problem that has none.

    Overlapped iterations are stored in `Problem` as the objective span; they are written as `iteration`, with
    `overlap_next`. Any other objective that includes work for parameters is written by its own name.
    """
    if not _has_parameters(problem):
        return {}
    objective = problem.objective
    if objective.passes is not None:
        return parameter_keys(problem) | {"objective": objective.name}
    overlapped = {"overlap_next": True} if objective.by_device else {}
    return parameter_keys(problem) | {"objective": ITERATION.name} | overlapped


def _has_parameters(problem: Problem) -> bool:
    return problem.network.has_collectives or gathers_each_pass(problem.stages)


def _without_gathering(problem: Problem) -> Problem:
    """Return the problem without the gathering that this feature added to every pass."""
    return replace(problem, stages=tuple(map(computing_alone, problem.stages)))


def _never_kept(document: Mapping[str, Any]) -> bool:
    return bool(at(document, "parameters.gather.keep") == NEVER)


def _each_microbatch(document: Mapping[str, Any]) -> bool:
    return bool(at(document, "parameters.reduce.every") == MICROBATCH)


_OWN = given("parameters")
_NEVER = Part("parameters.gather.keep", "gather.keep never", _never_kept, NEVER)
_EACH = Part("parameters.reduce.every", "reduce.every microbatch", _each_microbatch, MICROBATCH)
_KEPT, _ONCE_ONLY = "free, always or a window", "iteration"
_NO_PART_REPEATS = "what runs once an iteration does not repeat with micro-batches"

FEATURES.register(
    Feature(
        name="parameters",
        keys=Keys,
        mistakes=_mistakes,
        per_stage=_per_stage,
        times=_times,
        memory=_memory,
        stages=_stages,
        fields=_fields,
        written=_written,
        refused=(
            Refused(
                given("times.overlapped"),
                _OWN,
                "one of the two",
                "blocks are of passes on one stream, with nothing behind them",
            ),
            Refused(of_value("objective", "span"), _OWN, "iteration", "with overlap_next that is the span"),
            Refused(of_value("objective", "period"), _OWN, "iteration", _NO_PART_REPEATS),
            Refused(_NEVER, given("sequence_chunks"), _KEPT, "times of tasks are those of a whole micro-batch"),
            Refused(_NEVER, given("modules"), _KEPT, "passes of modules are one task each"),
            Refused(_NEVER, given("microbatch_scale"), _KEPT, "a gathering takes as long for a short micro-batch"),
            Refused(_NEVER, SEVERAL_LAYERS, _KEPT, "a gathering is of the whole stage, not of a layer"),
            Refused(
                _NEVER, more_than_one("parameters.reduce.buckets"), _KEPT, "a bucket's share of tasks counts gatherings"
            ),
            Refused(_NEVER, given("memory.recompute"), _KEPT, "a recomputation gathers nothing"),
            Refused(_EACH, given("sequence_chunks"), _ONCE_ONLY, "a reduction is of a micro-batch, not of a piece"),
            Refused(_EACH, given("modules"), _ONCE_ONLY, "modules run one micro-batch for several of others"),
            Refused(_EACH, given("microbatch_scale"), _ONCE_ONLY, "a reduction takes as long for a short micro-batch"),
            Refused(_EACH, given("pipelines"), _ONCE_ONLY, "replicas of a stage reduce their gradients together"),
            Refused(_EACH, given("parameters.holders"), _ONCE_ONLY, "stages with the same parameters reduce together"),
        ),
        with_units={
            **{f"parameters.{key}.time": QuantityKind.TIME for key in ("gather", "reduce", "step")},
            "parameters.gather.memory": QuantityKind.MEMORY,
        },
        present_in=_has_parameters,
        unlowered=_without_gathering,
        once=True,
        runs_in_torch=False,
    )
)
