"""The objective free memory: leave the most memory free on every device, and of those schedules take the least time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from pipesched.files.features.catalogue import FEATURES, Columns, Feature, FeatureKeys, ProblemForm
from pipesched.files.fields import field_types
from pipesched.files.fields.section import WrongPaths
from pipesched.files.fields.together import Refused, given, of_value
from pipesched.problem.objective import OBJECTIVES, objectives
from pipesched.problem.objectives.free_memory import FREE_MEMORY
from pipesched.problem.problem import Problem

_KEY = "then"
_TIMES = tuple(one.name for one in objectives() if one.passes is None)


class Keys(FeatureKeys):
    """The key `then`: the time to minimise among the schedules with the most free memory."""

    then: Annotated[str, field_types.one_of(*_TIMES)] | None = Field(
        None, description="with objective free_memory: what to minimise then; default makespan"
    )


def _mistakes(form: ProblemForm, _stages: int | None, wrong: WrongPaths) -> Iterator[str]:
    """Yield a mistake if free memory is asked for without a limit of memory, or `then` without free memory."""
    if form.objective != FREE_MEMORY.name:
        if form.then is not None and not wrong & {"objective", _KEY}:
            yield f"{_KEY}: found with objective {form.objective}; allowed: with {FREE_MEMORY}"
        return
    if (form.memory is None or form.memory.capacity is None) and not any(path.startswith("memory") for path in wrong):
        yield f"objective: found {FREE_MEMORY} without memory.capacity; allowed: with it"


def _objective(problem: Problem, form: ProblemForm, _: Columns) -> Mapping[str, Any]:
    if problem.objective.leaves is None:
        return {}
    return {"objective": problem.objective.then(OBJECTIVES[form.then or _TIMES[0]])}


def _written(problem: Problem) -> dict[str, object]:
    objective = problem.objective
    return {} if objective.leaves is None else {"objective": objective.leaves.value, _KEY: objective.name}


_REFUSED = (Refused(of_value("objective", FREE_MEMORY.name), given("parameters"), "iteration", "it includes them"),)

FEATURES.register(
    Feature(
        name=_KEY,
        keys=Keys,
        mistakes=_mistakes,
        fields=_objective,
        written=_written,
        refused=_REFUSED,
        asked_by=FREE_MEMORY.name,
        present_in=lambda problem: problem.objective.leaves is not None,
        has_state=False,
    )
)
