"""List schedules by rules that are searched for: very long problems get a schedule from rules of a shorter one."""

from __future__ import annotations

import pytest

from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.construction.sequential import Sequential
from solver.engine.search import Engine, Search
from solver.engine.subsolvers.tuned_lists import RulesOfShorter, TunedListSchedules
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

LIMITS = counted(1)


BOUNDS = AnalyticBounds()


@pytest.mark.parametrize("placement", ("linear", "v-shape"))
def test_a_very_long_problem_has_a_schedule_within_some_per_cent(placement: str) -> None:
    memory = {"activation": 1, "capacity": 3 if placement == "linear" else 6}
    long = problem(4, 2000, placement=placement, memory=memory, objective="span")
    found = solve(long, LIMITS, engine=Engine(BOUNDS, (RulesOfShorter(counted_runs=20),), (), Search.solution))
    assert found.timeline is not None
    assert found.gap is not None and found.gap < 0.1


def test_little_memory_is_within_reach_where_published_schedules_are_not() -> None:
    """The plain policies end at 4 % and more above; the best published schedule that fits takes far longer."""
    short = problem(6, 24, memory={"activation": 1, "capacity": 4}, objective="span")
    found = solve(
        short, LIMITS, engine=Engine(BOUNDS, (Sequential(),), (TunedListSchedules(counted_runs=60),), Search.solution)
    )
    assert found.gap is not None and found.gap < 0.12
