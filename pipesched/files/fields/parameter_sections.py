"""The section `parameters` as problem and plan files share it, and the rules that tie it to the objective."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Protocol

from pydantic import Field

from pipesched.files.fields import field_types
from pipesched.files.fields.field import field, whole_number
from pipesched.files.fields.section import Section, WrongPaths
from pipesched.problem.objective import OBJECTIVES

# The stream of a collective that names none.
COLLECTIVE_STREAM = "dp"
FREE, ALWAYS, NEVER = "free", "always", "never"
ITERATION, MICROBATCH = "iteration", "microbatch"


def _keep(value: object) -> str | int | None:
    """Return `free`, `always` or `never` as it is, and `{window: N}` as the number N; None for anything else."""
    if isinstance(value, dict) and set(value) == {"window"}:
        return whole_number(1)(value["window"])
    return value if value in (FREE, ALWAYS, NEVER) else None


_Keep = Annotated[
    str | int,
    field(
        "free, always, never, or {window: N} with N at least 1",
        _keep,
        {
            "anyOf": [
                {"enum": [FREE, ALWAYS, NEVER]},
                {
                    "type": "object",
                    "properties": {"window": {"type": "integer", "minimum": 1}},
                    "required": ["window"],
                    "additionalProperties": False,
                },
            ]
        },
    ),
]


_Every = Annotated[str, field_types.one_of(ITERATION, MICROBATCH)]


class ParametersPart(Section):
    """Base class for the section `parameters` and the sections inside it, so that features can find and extend them."""


class GatherSection(ParametersPart):
    """Gathering the parameters of a stage, which its passes need while they run: an all-gather of shards."""

    time: field_types.Numbers | None = Field(None, description="its duration; default 0")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream that runs it; default dp")
    memory: field_types.Numbers | None = Field(None, description="what they hold while they are gathered")
    keep: _Keep = Field(
        FREE,
        description="always: gathered once; free: dropped, and gathered again, as the schedule says; "
        "window: the same, with so many stages of a device gathered at once at most; "
        "never: gathered before every F, B and BW and dropped after it",
    )
    most: field_types.Count | None = Field(None, description="how often in all, of all stages together; default: any")

    @property
    def window(self) -> int | None:
        """The most stages of a device gathered at once; None where memory alone limits that."""
        return self.keep if isinstance(self.keep, int) else None


class ReduceSection(ParametersPart):
    """The reduction of a stage's gradients, after its last backward: a reduce-scatter or an all-reduce."""

    required: ClassVar[tuple[str, ...]] = ("time",)

    time: field_types.Numbers | None = Field(None, description="its duration, of all buckets together")
    on: field_types.Name = Field(COLLECTIVE_STREAM, description="the stream that runs it; default dp")
    buckets: field_types.Count = Field(
        1, description="equal parts of it, each begun when its share of the weights' gradients is there; default 1"
    )
    every: _Every = Field(
        ITERATION,
        description="microbatch: one of this time after each W or BW, for sharded gradients; default iteration",
    )


class StepSection(ParametersPart):
    """The optimizer's step of a stage, after its reduction, on the first stream."""

    required: ClassVar[tuple[str, ...]] = ("time",)

    time: field_types.Numbers | None = Field(None, description="its duration")


class _Form(Protocol):
    """The keys of problem and plan files that the check of the objective reads."""

    overlap_next: bool

    @property
    def objective(self) -> str: ...


def objective_mistakes(form: _Form, once: Sequence[str], others: str, wrong: WrongPaths) -> Iterator[str]:
    """Yield mistakes where `parameters` and the objective do not go together: work once an iteration needs `iteration`.

    `once` names the keys that add work once an iteration, empty without such; `others` lists, as text, the objectives
    allowed without them. Keys already known as wrong give no mistake.
    """
    wanted = OBJECTIVES[form.objective].passes is not None
    if form.overlap_next and not once:
        yield "overlap_next: found without parameters; allowed: with parameters and objective iteration"
    if wanted and not once and not any(path.split(".")[0] == "parameters" for path in wrong):
        yield f"objective: found {form.objective} without parameters; allowed: {others}"
    if once and not wanted and "objective" not in wrong:
        yield f"objective: found {form.objective} with {once[0]}; allowed: iteration"


class ParametersSection(ParametersPart):
    """Work of every stage for its parameters, once an iteration."""

    gather: GatherSection | None = Field(None, description="gathering them before they are used")
    reduce: ReduceSection | None = Field(None, description="the reduction of its gradients")
    step: StepSection | None = Field(None, description="the optimizer's step")
    holders: field_types.StageNumbers | None = Field(
        None,
        description="with chains, for each stage the one of its device whose parameters it computes with, which "
        "gathers and reduces for both; default: each has its own",
    )


def none_given(section: ParametersPart, wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake if `parameters` has neither `gather`, `reduce` nor `step`.

    Nothing if a key of it is known as wrong.
    """
    if all(getattr(section, key) is None for key in ("gather", "reduce", "step")) and not any(
        path.startswith("parameters.") for path in wrong
    ):
        yield "parameters: found none of gather, reduce and step; allowed: one of them or more"
