"""What stages run once an iteration for their parameters (`parameters`): the keys, their checks, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from pipesched.files.exact_numbers import as_number
from pipesched.files.fields import field_types
from pipesched.problem.problem import Problem
from pipesched.problem.stage import TaskSpec

if TYPE_CHECKING:
    from pipesched.files.problems.schema import ProblemFile

# The stream of a collective that names none.
COLLECTIVE_STREAM = "dp"
REDUCE, STEP = ("parameters", "reduce"), ("parameters", "step")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class ReduceSection(_Section):
    """The reduction of a stage's gradients, behind its last backward: a reduce-scatter or an all-reduce."""

    time: field_types.Numbers | None = Field(None, description="its duration")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream that runs it; default dp")


class StepSection(_Section):
    """The optimizer's step of a stage, behind its reduction, on the first stream."""

    time: field_types.Numbers | None = Field(None, description="its duration")


class ParametersSection(_Section):
    """What every stage runs once an iteration for its parameters."""

    reduce: ReduceSection | None = Field(None, description="the reduction of its gradients")
    step: StepSection | None = Field(None, description="the optimizer's step")


def parameter_times(section: ParametersSection | None) -> Iterator[tuple[tuple[str, str], Fraction | list[Fraction]]]:
    """The times that the file gives, by column."""
    for column in (REDUCE, STEP):
        own = getattr(section, column[1], None)
        if own is not None:
            yield column, own.time or Fraction(0)


def of_stages(
    section: ParametersSection | None, columns: Mapping[Any, Sequence[int]], first: str
) -> dict[str, list[TaskSpec]]:
    """`reduce` and `step` of every stage, as `Stage` holds them; `first` is the first stream."""
    found: dict[str, list[TaskSpec]] = {}
    for column, _ in parameter_times(section):
        assert section is not None
        stream = section.reduce.on if column is REDUCE and section.reduce else first
        found[column[1]] = [TaskSpec(stream, ticks) for ticks in columns[column]]
    return found


def parameter_mistakes(form: ProblemFile, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each; none of what is already known as wrong."""
    section, wanted = form.parameters, form.objective == "iteration"
    if section is None:
        if wanted and not any(path.split(".")[0] == "parameters" for path in wrong):
            yield "objective: found iteration without parameters; allowed: makespan, span or period"
        return
    if not wanted and "objective" not in wrong:
        yield f"objective: found {form.objective} with parameters; allowed: iteration"
    if section.reduce is None and section.step is None and not any(path.startswith("parameters.") for path in wrong):
        yield "parameters: found neither reduce nor step; allowed: one of them or both"
    for key in ("reduce", "step"):
        own = getattr(section, key)
        if own is not None and own.time is None and f"parameters.{key}.time" not in wrong:
            yield f"parameters.{key}.time: missing; it is required"
    if form.microbatch_scale is not None:
        yield "microbatch_scale: found with parameters; allowed: one of the two"
    if form.times and form.times.overlapped is not None and "times.overlapped" not in wrong:
        yield "times.overlapped: found with parameters; allowed: one of the two"


def parameter_keys(problem: Problem) -> dict[str, object]:
    """The key `parameters` of a problem; nothing where it has none."""
    stages = problem.stages[:: problem.sequence_chunks]
    section: dict[str, object] = {}
    for key in ("reduce", "step"):
        own: list[TaskSpec] = [task for stage in stages if (task := getattr(stage, key)) is not None]
        if own and len(own) < len(stages):
            raise ValueError("a problem file has every stage reduce its gradients, and step, or none")
        if own:
            times = [as_number(task.ticks * problem.tick) for task in own]
            section[key] = {"time": times[0] if len(set(times)) == 1 else times}
            section[key] |= {"on": own[0].stream} if key == "reduce" else {}  # type: ignore[operator]
    return {"parameters": section} if section else {}
