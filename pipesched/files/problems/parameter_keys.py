"""What stages run once an iteration for their parameters (`parameters`): the keys, their checks, and the way back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from pipesched.files.exact_numbers import as_number
from pipesched.files.fields import field_types
from pipesched.files.fields.field import field, whole_number
from pipesched.problem.problem import Problem
from pipesched.problem.stage import Gather, TaskSpec

if TYPE_CHECKING:
    from pipesched.files.problems.schema import ProblemFile

# The stream of a collective that names none.
COLLECTIVE_STREAM = "dp"
GATHER, REDUCE, STEP = ("parameters", "gather"), ("parameters", "reduce"), ("parameters", "step")
MEMORY = ("parameters", "memory")
FREE, ALWAYS = "free", "always"


def _keep(value: object) -> str | int | None:
    """One of the two words, or the number of a window."""
    if isinstance(value, dict) and set(value) == {"window"}:
        return whole_number(1)(value["window"])
    return value if value in (FREE, ALWAYS) else None


_Keep = Annotated[
    str | int,
    field("free, always, or {window: N} with N at least 1", _keep),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": [FREE, ALWAYS]},
                {
                    "type": "object",
                    "properties": {"window": {"type": "integer", "minimum": 1}},
                    "required": ["window"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class GatherSection(_Section):
    """Gathering the parameters of a stage, which its passes need while they run: an all-gather of shards."""

    time: field_types.Numbers | None = Field(None, description="its duration; default 0")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream that runs it; default dp")
    memory: field_types.Numbers | None = Field(None, description="what they hold while they are gathered")
    keep: _Keep = Field(
        FREE,
        description="always: gathered once; free: dropped, and gathered again, as the schedule says; "
        "window: the same, with so many stages of a device gathered at once at most",
    )
    most: field_types.Count | None = Field(None, description="how often in all, of all stages together; default: any")

    @property
    def window(self) -> int | None:
        """How many stages of a device are gathered at once at most; None where memory alone limits that."""
        return self.keep if isinstance(self.keep, int) else None


class ReduceSection(_Section):
    """The reduction of a stage's gradients, behind its last backward: a reduce-scatter or an all-reduce."""

    time: field_types.Numbers | None = Field(None, description="its duration")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream that runs it; default dp")


class StepSection(_Section):
    """The optimizer's step of a stage, behind its reduction, on the first stream."""

    time: field_types.Numbers | None = Field(None, description="its duration")


class ParametersSection(_Section):
    """What every stage runs once an iteration for its parameters."""

    gather: GatherSection | None = Field(None, description="gathering them before they are used")
    reduce: ReduceSection | None = Field(None, description="the reduction of its gradients")
    step: StepSection | None = Field(None, description="the optimizer's step")


def parameter_times(section: ParametersSection | None) -> Iterator[tuple[tuple[str, str], Fraction | list[Fraction]]]:
    """The times that the file gives, by column."""
    for column in (GATHER, REDUCE, STEP):
        own = getattr(section, column[1], None)
        if own is not None:
            yield column, own.time or Fraction(0)


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
    own = section.gather if section else None
    if own is not None:
        stages = len(found["gather"])
        # Before every pass at the most: a forward, a backward and its part for the weights.
        most = 1 if own.keep == ALWAYS else min(3 * microbatches, (own.most or 3 * microbatches * stages) - stages + 1)
        tasks = zip(found["gather"], columns[MEMORY], strict=True)
        found["gather"] = [Gather(task, memory, most) for task, memory in tasks]
    return found


def _gathers(section: ParametersSection, stages: int | None) -> Iterator[str]:
    own = section.gather
    if own is not None and own.most is not None and stages is not None:
        if own.most < stages:
            yield f"parameters.gather.most: found {own.most}; allowed: at least {stages}, once for every stage"
        elif own.keep == ALWAYS:
            yield f"parameters.gather.most: found {own.most} with keep always; allowed: with keep free or a window"


def parameter_mistakes(form: ProblemFile, stages: int | None, wrong: frozenset[str]) -> Iterator[str]:
    """Every broken rule, one line each; none of what is already known as wrong."""
    section, wanted = form.parameters, form.objective == "iteration"
    if form.overlap_next and section is None:
        yield "overlap_next: found without parameters; allowed: with parameters and objective iteration"
    if section is None:
        if wanted and not any(path.split(".")[0] == "parameters" for path in wrong):
            yield "objective: found iteration without parameters; allowed: makespan, span or period"
        return
    if not wanted and "objective" not in wrong:
        yield f"objective: found {form.objective} with parameters; allowed: iteration"
    if (section.gather, section.reduce, section.step) == (None, None, None) and not any(
        path.startswith("parameters.") for path in wrong
    ):
        yield "parameters: found none of gather, reduce and step; allowed: one of them or more"
    for key in ("reduce", "step"):
        own = getattr(section, key)
        if own is not None and own.time is None and f"parameters.{key}.time" not in wrong:
            yield f"parameters.{key}.time: missing; it is required"
    yield from _gathers(section, stages)
    if form.microbatch_scale is not None:
        yield "microbatch_scale: found with parameters; allowed: one of the two"
    if form.times and form.times.overlapped is not None and "times.overlapped" not in wrong:
        yield "times.overlapped: found with parameters; allowed: one of the two"


def parameter_keys(problem: Problem) -> dict[str, object]:
    """The key `parameters` of a problem; nothing where it has none."""
    stages = problem.stages[:: problem.sequence_chunks]
    section: dict[str, object] = {}
    for key in ("gather", "reduce", "step"):
        own: list[TaskSpec] = [
            task.task if isinstance(task, Gather) else task
            for stage in stages
            if (task := getattr(stage, key)) is not None
        ]
        if own and len(own) < len(stages):
            raise ValueError("a problem file has every stage reduce its gradients, and step, or none")
        if own:
            times = [as_number(task.ticks * problem.tick) for task in own]
            section[key] = {"time": times[0] if len(set(times)) == 1 else times}
            section[key] |= {} if key == "step" else {"on": own[0].stream}  # type: ignore[operator]
    gathers = [stage.gather for stage in stages if stage.gather is not None]
    if gathers:
        held = [as_number(one.memory * problem.resolution) for one in gathers]
        more: dict[str, object] = {"memory": held[0] if len(set(held)) == 1 else held}
        once = problem.most_gathers is None and all(one.most == 1 for one in gathers)
        more |= {"keep": ALWAYS} if once else {}
        more |= {} if problem.gather_window is None else {"keep": {"window": problem.gather_window}}
        more |= {} if problem.most_gathers is None else {"most": problem.most_gathers}
        section["gather"] |= more  # type: ignore[operator]
    return {"parameters": section} if section else {}
