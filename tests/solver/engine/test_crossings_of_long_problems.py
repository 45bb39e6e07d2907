"""Crossings of very long problems, whose time they do not take."""

from __future__ import annotations

from pipesched.results.solution import Status
from solver.bounds.crossing.bound import KIND
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
