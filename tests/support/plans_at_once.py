"""The plan search stopped before any search: the first plans that it constructs."""

from __future__ import annotations

from pipesched.layers.plan_problem import PlanProblem
from pipesched.results.plan import Plan
from pipesched.validation.validator import validate
from solver.planning.plan import plan
from tests.support.counted import counted

# Not even enough for one call of CP-SAT: what is found is found by simulating first plans.
AT_ONCE = counted(1e-9)


def at_once(problem: PlanProblem) -> Plan:
    found = plan(problem, AT_ONCE)
    if found.best is not None:
        assert validate(found.best.timeline) == []
    return found
