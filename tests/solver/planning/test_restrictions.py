"""No restriction of a plan has a better first plan than the same without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import Decide, PlanProblem
from pipesched.layers.recompute_rule import RecomputeRule
from tests.support.daily import daily
from tests.support.plans_at_once import at_once

RESTRICTED: dict[str, Callable[[PlanProblem], PlanProblem]] = {
    "never": lambda one: replace(one, recompute=Decide.NEVER),
    "always": lambda one: replace(one, recompute=Decide.ALWAYS),
    "even": lambda one: replace(one, even=True),
    "first": lambda one: replace(one, recompute_rule=RecomputeRule.FIRST),
    "all": lambda one: replace(one, recompute_rule=RecomputeRule.ALL),
    "one schedule": lambda one: replace(one, schedules=("v-half",)),
}


# First plans of one schedule without a restriction and with one are compared in `test_first_plans.py`.
CASES = [(seed, schedules) for seed in range(2) for schedules in ((), ("zbv", "v-half", "dualpipe-v"))]


@pytest.mark.parametrize(("seed", "schedules"), daily(CASES, 4))
def test_no_restriction_has_a_better_first_plan(seed: int, schedules: tuple[str, ...]) -> None:
    """On devices of unequal speed and memory, where some of them cannot hold what balanced partitions give them."""
    random = Random(seed)
    moe = {"name": "moe", "count": 4, "forward": 1, "backward": 1, "weight": 1, "memory": 7, "activation": 0.6}
    layers = [
        {"name": "embedding", "forward": 0.2, "backward": 0.1, "weight": 0.2, "memory": 4, "activation": 0.1},
        moe | {"recompute": [{"name": "full", "time": 1, "keeps": 0.1}]},
        {"name": "head", "forward": 1.5, "backward": 1.5, "memory": 4, "activation": 0.3, "with_previous": True},
    ]
    fast, slow = random.choice((34, 46)), random.choice((15, 18, 24))
    classes = [{"devices": 1, "speed": 1, "memory": fast}, {"devices": 1, "speed": 0.6, "memory": slow}]
    document = {"cluster": classes, "microbatches": random.choice((3, 4)), "layers": layers, "placement": "v-shape"}
    free = replace(plan_problem_from(document), schedules=schedules)
    value = at_once(free).value
    for name, restrict in RESTRICTED.items():
        narrower = at_once(restrict(free)).value
        assert narrower is None or (value is not None and value <= narrower), (name, value, narrower)
