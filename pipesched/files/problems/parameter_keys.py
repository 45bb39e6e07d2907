"""What stages run once an iteration for their parameters (`parameters`): the keys, their checks, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipesched.files.exact_numbers import as_number
from pipesched.files.fields.parameter_sections import (
    ALWAYS,
    GatherSection,
    ParametersPart,
    ReduceSection,
    StepSection,
    objective_mistakes,
)
from pipesched.files.problems.chain_keys import StageNumbers
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Gather, Stage, TaskSpec, most_gathers

if TYPE_CHECKING:
    from pipesched.files.problems.schema import ProblemFile

GATHER, REDUCE, STEP = ("parameters", "gather"), ("parameters", "reduce"), ("parameters", "step")
MEMORY = ("parameters", "memory")


class ParametersSection(ParametersPart):
    """What every stage runs once an iteration for its parameters."""

    gather: GatherSection | None = Field(None, description="gathering them before they are used")
    reduce: ReduceSection | None = Field(None, description="the reduction of its gradients")
    step: StepSection | None = Field(None, description="the optimizer's step")
    holders: StageNumbers | None = Field(
        None,
        description="with chains, for each stage the one of its device whose parameters it computes with, which "
        "gathers and reduces for both; default: each has its own",
    )


def parameter_times(section: ParametersSection | None) -> Iterator[tuple[tuple[str, str], Fraction | list[Fraction]]]:
    """The times that the file gives, by column; of a reduction that of a bucket."""
    for column in (GATHER, REDUCE, STEP):
        own = getattr(section, column[1], None)
        if own is not None:
            time, parts = own.time or Fraction(0), getattr(own, "buckets", 1)
            yield column, [each / parts for each in time] if isinstance(time, list) else time / parts


def parameter_memory(section: ParametersSection | None) -> Iterator[tuple[tuple[str, str], Fraction | list[Fraction]]]:
    """The amounts of memory that the file gives, by column."""
    if section is not None and section.gather is not None:
        yield MEMORY, section.gather.memory or Fraction(0)


def of_stages(
    section: ParametersSection | None, columns: Mapping[Any, Sequence[int]], first: str, microbatches: int
) -> dict[str, list[Any]]:
    """`gather`, `reduce` and `step` of every stage, as `Stage` holds them; `first` is the first stream."""
    found: dict[str, list[Any]] = {}
    for column, _ in parameter_times(section):
        stream = getattr(getattr(section, column[1]), "on", first)
        found[column[1]] = [TaskSpec(stream, ticks) for ticks in columns[column]]
    if section and section.reduce:
        found["buckets"] = [section.reduce.buckets] * len(found["reduce"])
    own = section.gather if section else None
    if own is not None:
        stages = len(set(section.holders)) if section and section.holders else len(found["gather"])
        most = 1 if own.keep == ALWAYS else most_gathers(own.most, microbatches, stages)
        tasks = zip(found["gather"], columns[MEMORY], strict=True)
        found["gather"] = [Gather(task, memory, most) for task, memory in tasks]
    return found


def _gathers(section: ParametersSection, stages: int | None) -> Iterator[str]:
    own = section.gather
    if own is not None and own.most is not None and stages is not None:
        stages = len(set(section.holders)) if section.holders else stages
        if own.most < stages:
            yield f"parameters.gather.most: found {own.most}; allowed: at least {stages}, once for every stage"
        elif own.keep == ALWAYS:
            yield f"parameters.gather.most: found {own.most} with keep always; allowed: with keep free or a window"


def parameter_mistakes(form: ProblemFile, stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each; none of what is already known as wrong."""
    yield from objective_mistakes(form, "makespan, span or period", wrong)
    section = form.parameters
    if section is None:
        return
    for key in ("reduce", "step"):
        own = getattr(section, key)
        if own is not None and f"parameters.{key}.time" not in wrong:
            yield from own.missing(f"parameters.{key}")
    yield from _gathers(section, stages)


def with_holders(section: ParametersSection | None, stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages, of which only those run anything for parameters that hold their own."""
    holders = section.holders if section and section.holders else range(len(stages))
    pairs = zip(stages, enumerate(holders), strict=True)
    return tuple(own if n == held else replace(own, gather=None, reduce=None, step=None) for own, (n, held) in pairs)


def parameter_keys(problem: Problem) -> dict[str, object]:
    """The key `parameters` of a problem; nothing where it has none."""
    stages = problem.stages
    section: dict[str, object] = {}
    if any(stage != holder for stage, holder in enumerate(problem.holders)):
        if not problem.chain_shares:
            raise ValueError("a problem file has stages with the parameters of others only with chains")
        stages = tuple(problem.stages[holder] for holder in problem.holders)
        section["holders"] = list(problem.holders)
    for key in ("gather", "reduce", "step"):
        own: list[TaskSpec] = [
            task.task if isinstance(task, Gather) else task
            for stage in stages
            if (task := getattr(stage, key)) is not None
        ]
        if (own and len(own) < len(stages)) or len({stage.buckets for stage in stages}) > 1:
            raise ValueError("a problem file has every stage reduce its gradients, and step, alike, or none")
        if len({task.stream for task in own}) > 1:
            raise ValueError("a problem file has what all stages run for their parameters on one stream")
        if own:
            parts = stages[0].buckets if key == "reduce" else 1
            times = [as_number(task.ticks * parts * problem.tick) for task in own]
            section[key] = {"time": times[0] if len(set(times)) == 1 else times}
            section[key] |= {} if key == "step" else {"on": own[0].stream}  # type: ignore[operator]
            section[key] |= {"buckets": parts} if parts > 1 else {}  # type: ignore[operator]
    if not section.keys() - {"holders"}:
        return {}
    gathers = [stage.gather for stage in stages if stage.gather is not None]
    if gathers:
        held = [as_number(one.memory * problem.resolution) for one in gathers]
        more: dict[str, object] = {"memory": held[0] if len(set(held)) == 1 else held}
        once = problem.most_gathers is None and all(one.most == 1 for one in gathers)
        more |= {"keep": ALWAYS} if once else {}
        more |= {} if problem.gather_window is None else {"keep": {"window": problem.gather_window}}
        more |= {} if problem.most_gathers is None else {"most": problem.most_gathers}
        section["gather"] |= more  # type: ignore[operator]
    return {"parameters": section}
