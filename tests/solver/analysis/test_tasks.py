"""Analyses of passes of several tasks: their questions go to the engine for tasks, or are refused."""

from __future__ import annotations

from fractions import Fraction
from threading import Event

import pytest

from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from pipesched.validation.validator import validate
from solver.analysis.min_memory import least_memory
from solver.analysis.sensitivity import explain
from solver.analysis.time_budget import Budget
from solver.limits import Limits
from solver.solve import solve
from tests.support.makers import schedule

LIMITS = Limits(deterministic=2.0, workers=1)


def hidden(capacity: int = 2) -> Problem:
    """Two micro-batches whose communication takes as long as their computation: each hides the other's."""
    tasks = {
        "forward": [
            {"name": "attn", "time": 2},
            {"name": "dispatch", "on": "comm", "time": 2},
            {"name": "mlp", "time": 2},
        ],
        "backward": [
            {"name": "mlp", "time": 2},
            {"name": "combine", "on": "comm", "time": 2},
            {"name": "attn", "time": 2},
        ],
    }
    streams = ["compute", "comm"]
    return problem_from(
        {"devices": 1, "microbatches": 2, "streams": streams, "tasks": tasks, "memory": {"capacity": capacity}}
    )


def test_bounds_of_questions_hold_for_tasks_in_each_others_gaps() -> None:
    one = hidden()
    found = Budget(LIMITS, 1, Event()).ask(one)
    assert found.timeline is not None and validate(found.timeline) == []
    in_turn = measure(simulate(one, schedule("F0.0 BW0.0 F0.1 BW0.1"))).makespan
    # Taken for one task on one stream, a pass would be worth 12 ticks, and no schedule below 24 be thought possible.
    assert one.in_units(in_turn) == 24 and one.in_units(found.lower_bound_ticks) <= found.value < 24  # type: ignore[operator]


def test_the_least_memory_of_tasks() -> None:
    best = solve(hidden(), LIMITS)
    solution, memory = least_memory(best, Fraction(1), LIMITS)
    assert solution.timeline is not None and validate(solution.timeline) == []
    assert solution.metrics is not None and solution.metrics.peak_memory == (1,)
    _, tight = least_memory(best, Fraction(0), LIMITS)
    assert tight.level == 2 * memory.level


def test_what_is_not_explained() -> None:
    best = solve(hidden(), LIMITS)
    with pytest.raises(BadInput, match="explain: found passes of several tasks"):
        explain(best)
