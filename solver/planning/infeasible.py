"""Why there is no plan: the placement that comes closest, and the least memory with which it would have one."""

from __future__ import annotations

from collections.abc import Sequence

from pipesched.layers.plan_problem import PlanProblem
from solver.planning.choice_search import ChoiceSearch


def why_no_plan(plan: PlanProblem, choices: Sequence[ChoiceSearch]) -> str:
    """The reason of every placement."""
    return "; ".join(f"{each.choice}: {each.reason}" for each in choices) or "no placement is allowed"
