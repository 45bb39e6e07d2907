"""The cost-aware V schedules: never worse than the published order, in its peak; and better where times are real."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem import placement
from pipesched.problem.objective import objectives
from pipesched.problem.problem import Objective
from tests.heuristics.test_every_heuristic import alike, run, uneven
from tests.support.daily import daily

PUBLISHED = ("zbv", "v-half", "v-min")
every_one = pytest.mark.parametrize("name", PUBLISHED)


@every_one
@pytest.mark.parametrize("p", (1, 2, *daily((3, 4, 5, 6), 2)))
def test_never_worse_and_never_a_higher_peak(name: str, p: int) -> None:
    random = Random(f"{name} {p}")
    for m in (1, p, 3 * p) if p > 3 else (1, 2, p, 2 * p, 3 * p):
        objective = random.choice(objectives())
        problem = replace(uneven(placement.v_shape(p), m, random), objective=objective)
        goal = Objective.MAKESPAN if problem.objective == Objective.MAKESPAN else Objective.SPAN
        published, aware = run(problem, name), run(problem, f"{name}-cost-aware")
        assert aware.value_ticks(goal) <= published.value_ticks(goal)
        assert all(a <= b for a, b in zip(aware.peak_quanta, published.peak_memory, strict=True))


@every_one
def test_unequal_stages_are_mostly_better(name: str) -> None:
    """The published orders of V-Half and V-Min ignore the times altogether."""
    random, better = Random(name), 0
    for _ in range(8):
        problem = replace(uneven(placement.v_shape(4), 8, random), objective=Objective.SPAN)
        better += run(problem, f"{name}-cost-aware").span_ticks < run(problem, name).span
    assert better >= 5


def test_what_cannot_be_better_is_the_published_order() -> None:
    """ZBV at unit times has no bubble of span."""
    problem = replace(alike(placement.v_shape(4), 12, 1, 1, 1), objective=Objective.SPAN)
    assert HEURISTICS["zbv-cost-aware"].order(problem).orders == HEURISTICS["zbv"].order(problem).orders
