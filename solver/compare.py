"""`compare` in Python: published schedules on a problem, or on a model made of layers."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import overload

from heuristics.catalogue import HEURISTICS
from pipesched.arguments import A_PLAN_PROBLEM, A_PROBLEM, refuse_other
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.problem import Problem
from pipesched.results.comparison import Comparison
from solver.analysis.published_comparison import compare as compared
from solver.limits import Limits, limits_from
from solver.planning.compared_schedule import ModelComparison
from solver.planning.schedule_comparison import FREE, compared_schedules, orders_of


@overload
def compare(
    problem: Problem,
    limits: Limits | None = None,
    schedules: Sequence[str] | None = None,
    *,
    seconds: float | None = None,
) -> Comparison: ...
@overload
def compare(
    problem: PlanProblem,
    limits: Limits | None = None,
    schedules: Sequence[str] | None = None,
    *,
    seconds: float | None = None,
) -> ModelComparison: ...
def compare(
    problem: Problem | PlanProblem,
    limits: Limits | None = None,
    schedules: Sequence[str] | None = None,
    *,
    seconds: float | None = None,
) -> Comparison | ModelComparison:
    """Return the published schedules (all, or those named) for a problem or a plan problem, as rows.

    For a problem those that fit the memory are first, best first; then those that exceed it; then those that do not
    apply, each with its reason; the last row is the best schedule found, named `pipesched`, if one was found. For a
    plan problem each schedule has its own best plan, and one more row, named `free`, has the best plan with any order;
    all are sorted by value, those without a plan that fits last. `seconds` replaces the time limit of `limits`; without
    both it is 60 s. Raises `BadInput` for a name that no schedule has, and if the first argument is neither kind of
    problem.
    """
    refuse_other("compare", problem, (Problem, PlanProblem), f"{A_PROBLEM}, or {A_PLAN_PROBLEM}")
    limits = limits_from("compare", limits, seconds)
    if isinstance(problem, Problem):
        return compared(problem, limits, schedules)
    names = HEURISTICS.names() if schedules is None else [HEURISTICS[name].name for name in schedules]
    orders = {name: orders_of(problem, name) for name in names}
    return ModelComparison(compared_schedules(problem, orders, FREE, limits, lambda _: None, Event()), problem)
