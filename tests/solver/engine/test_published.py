"""The phase of published schedules: what is left out of problems of many passes."""

from __future__ import annotations

from solver.engine.opening.analytic_bounds import AnalyticBounds
from solver.engine.opening.published import Published
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem


def names(phase: Published) -> list[str]:
    """Of the schedules that were tried, of a V with memory for V-Min alone."""
    engine = Engine(AnalyticBounds(), (phase,), (), Search.solution, raise_bounds=False)
    times = {"forward": 14.4, "backward": 14.3, "weight": 9.6, "transfer": 1.6}
    little = problem(6, 12, placement="v-shape", times=times, memory={"activation": 1, "capacity": 6}, objective="span")
    found = solve(little, Limits(workers=1, deterministic=1), engine=engine)
    return [one.name for one in found.candidates]


def test_of_many_passes_schedules_that_improve_one_that_does_not_fit_are_left_out() -> None:
    every, some = names(Published()), names(Published(compare_up_to_passes=0))
    assert {"v-min-cost-aware", "v-half-cost-aware", "zbv-cost-aware"} <= set(every)
    assert set(every) - set(some) == {"v-half-cost-aware", "zbv-cost-aware"}
