"""When crossings run: for very long problems, whose time they do not take, and early where they have few states."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from pipesched.results.solution import Status
from solver.bounds.crossing.bound import KIND
from solver.engine.engine import ENGINE
from solver.engine.phases.bounds.analytic_bounds import AnalyticBounds
from solver.engine.phases.bounds.crossings import CrossingBounds
from solver.engine.search import Search
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import problem

LIMITS = Limits(seconds=120, workers=1, deterministic=2)
# 24,000 passes; with two activations a device, round trips decide.
LONG = problem(4, 2000, memory={"activation": 1, "capacity": 2})


def test_a_very_long_problem_with_little_memory_is_proved_optimal() -> None:
    found = solve(LONG, LIMITS)
    assert found.status is Status.OPTIMAL
    assert found.certificate is not None and found.certificate.kind == KIND


@pytest.mark.parametrize(
    ("devices", "capacity", "placement", "early"),
    [(8, 4, "linear", True), (8, 6, "linear", False), (4, 2, "linear", True), (2, 2, "v-shape", False)],
)
def test_they_run_early_where_each_device_has_one_stage_and_states_are_few(
    devices: int, capacity: int, placement: str, early: bool
) -> None:
    one = problem(devices, 64, placement=placement, memory={"activation": 1, "capacity": capacity})
    phase = next(phase for phase in ENGINE.phases if isinstance(phase, CrossingBounds))
    engine = replace(ENGINE, bounds=AnalyticBounds(load_only=True))
    assert phase.most_states is not None
    assert phase.applies(Search(one, LIMITS, lambda _: None, Event(), engine)) == early
