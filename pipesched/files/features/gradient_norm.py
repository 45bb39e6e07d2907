"""The key `parameters.norm`: one norm of all gradients, on all devices at once, before every optimizer step."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

from pydantic import Field

from pipesched.files.exact_numbers import as_number
from pipesched.files.features.catalogue import FEATURES, Column, Columns, Feature, JoinedProblem, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.fields.parameter_sections import COLLECTIVE_STREAM, ParametersPart
from pipesched.files.fields.section import WrongPaths
from pipesched.problem.gradient_norm import norm_of, with_norm, without_norm
from pipesched.problem.passes import NORM
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Once, TaskSpec

_KEY = "parameters.norm"
_COLUMN = "parameters", "norm"


class NormSection(ParametersPart):
    """The norm of all gradients: one all-reduce of all devices that train, after their reductions, before any step."""

    required: ClassVar[tuple[str, ...]] = ("time",)

    time: field_types.Number | None = Field(None, description="its duration, once an iteration")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream of every device that runs it; default dp")


class Keys(ParametersPart):
    """The key `norm` of the section `parameters`: the norm of all gradients."""

    norm: NormSection | None = Field(
        None, description="the norm of all gradients, on all devices at once, for which every step waits"
    )


def _section(form: ProblemForm) -> NormSection | None:
    found: NormSection | None = getattr(form.parameters, "norm", None)
    return found


def _mistakes(form: ProblemForm, _stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    section = _section(form)
    if section is None or any(path.startswith("parameters") for path in wrong):
        return
    yield from section.missing(_KEY)
    if form.parameters.step is None:
        yield f"{_KEY}: found without parameters.step; allowed: with it, whose steps wait for the norm"


def _times(form: ProblemForm) -> Iterator[Column]:
    section = _section(form)
    if section is not None:
        yield _COLUMN, section.time or Fraction(0)


def _stages(form: ProblemForm, columns: Columns, count: int) -> dict[str, list[Any]]:
    """Return the field `once` of each of `count` stages, with the norm as a task of the stage's own.

    Empty without a norm. `_lower` makes one task of all of them, since the problems of one file are joined before.
    """
    section = _section(form)
    if section is None:
        return {}
    norm = Once(NORM, TaskSpec(section.on, columns[_COLUMN][0]), of_all=True)
    return {"once": [(norm,)] * count}


def _lower(problem: Problem, form: ProblemForm) -> Problem:
    norm = norm_of(problem)
    return problem if norm is None or _section(form) is None else with_norm(problem, norm.stream, norm.ticks)


def _written(problem: Problem) -> dict[str, object]:
    norm = norm_of(problem)
    if norm is None:
        return {}
    return {"parameters": {"norm": {"time": as_number(norm.ticks * problem.tick), "on": norm.stream}}}


FEATURES.register(
    Feature(
        name=_KEY,
        sections={"parameters": Keys},
        mistakes=_mistakes,
        times=_times,
        stages=_stages,
        joined=JoinedProblem(_lower, without_norm, _written),
        with_units={f"{_KEY}.time": QuantityKind.TIME},
        present_in=lambda problem: norm_of(problem) is not None,
    )
)
