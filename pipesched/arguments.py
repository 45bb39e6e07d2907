"""The error for Python callers who pass a value of a wrong type."""

from __future__ import annotations

from pipesched.errors import BadInput


def refuse_other(name: str, given: object, kind: type | tuple[type, ...], allowed: str) -> None:
    """Raise `BadInput` unless argument `name` has this type; `allowed` describes what it may be.

    `given` is its value.
    """
    if not isinstance(given, kind):
        raise BadInput(f"{name}: found {type(given).__name__}; allowed: {allowed}")


A_PROBLEM = "a Problem, as read_problem(PATH) returns it"
A_PLAN_PROBLEM = "a model made of layers, as read_plan(PATH) returns it"
A_SOLUTION = "a Solution, as solve(problem) returns it"
A_TIMELINE = "a Timeline, as simulate(problem, schedule) returns it, or the timeline of a solution"
