"""More freedom never gives less: a plan is there at once where one of a narrower restriction fits."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from pipesched.results.plan import Plan
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.limits import Limits
from solver.planning.plan import plan

# Not even enough for one call of CP-SAT: what is found is found by simulating first plans.
AT_ONCE = Limits(seconds=60, deterministic=1e-9, workers=1)


def model(schedule: str, capacity: Fraction | int, placement: str = "v-shape", **more: object) -> PlanProblem:
    full = [{"name": "full", "time": 2, "keeps": 0.1}]
    moe = {"name": "moe", "count": 22, "forward": 2, "backward": 2, "weight": 2, "memory": 1, "activation": 1}
    layers = [
        {"name": "embedding", "forward": 1, "backward": 1, "memory": 2, "activation": 0.5},
        moe | {"recompute": full},
        {"name": "head", "forward": 3, "backward": 6, "memory": 2, "activation": 0.5},
    ]
    return plan_problem_from(
        {"devices": 4, "microbatches": 12, "layers": layers, "placement": placement, "schedule": schedule}
        | {"memory": {"capacity": float(capacity)}, "transfer": 0.5, "objective": "makespan"}
        | more
    )


def at_once(problem: PlanProblem) -> Plan:
    found = plan(problem, AT_ONCE)
    if found.best is not None:
        assert validate(found.best.timeline) == []
    return found


@pytest.mark.parametrize(("schedule", "capacity"), [("zbv", 28), ("v-half", 21), ("dualpipe-v", 19), ("v-min", 15)])
def test_free_recomputation_has_a_plan_where_all_recomputed_or_none_has(schedule: str, capacity: int) -> None:
    free = model(schedule, capacity)
    values = {decide: at_once(replace(free, recompute=decide)).value for decide in Decide}
    assert values[Decide.ALWAYS] is not None
    known = [values[decide] for decide in (Decide.ALWAYS, Decide.NEVER)]
    assert values[Decide.FREE] is not None
    assert all(one is None or values[Decide.FREE] <= one for one in known)


@pytest.mark.parametrize("rule", RecomputeRule)
@pytest.mark.parametrize("placement", ["linear", "interleaved", "v-shape", "wave", "bidirectional"])
def test_free_orders_have_a_plan_where_all_has_to_be_recomputed(placement: str, rule: RecomputeRule) -> None:
    """With room for one micro-batch whose layers are all recomputed, and for the layers."""
    room = Fraction(18 if placement == "bidirectional" else 9)  # which holds every layer twice
    free = replace(model("free", room, placement), recompute_rule=rule)
    found = at_once(free)
    assert found.best is not None, found.reason


def test_a_free_partition_is_no_worse_than_the_even_one() -> None:
    free = model("zbv", 100)
    even, found = at_once(replace(free, even=True)), at_once(free)
    assert even.value is not None and found.value is not None and found.value <= even.value


def test_a_schedule_that_fits_no_balanced_partition_is_not_said_to_be_infeasible() -> None:
    """Its own cap of memory leaves no room there; whether it has one elsewhere is not known yet."""
    tight = model("zb", Fraction(14), "linear")
    found = plan(tight, Limits(seconds=60, deterministic=2, workers=1))
    assert found.status is not Status.INFEASIBLE and found.best is not None
