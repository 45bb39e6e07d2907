"""Schedules stretched to more micro-batches: valid on every placement, as good as their repetition, the same optimum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.errors import DoesNotApply
from pipesched.problem.problem import Problem
from pipesched.results.solution import Status
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules
from solver.construction.timing import best_times
from solver.cyclic.replication import ReplicationParams, best_extendable, shortened
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import DAY, daily
from tests.support.makers import problem

PLACEMENTS: tuple[dict[str, object], ...] = (
    {"placement": "linear"},
    {"placement": "linear", "memory": {"activation": 4, "freed_by_backward": 3, "capacity": 9}},
    {"placement": "linear", "times": {"forward": 3, "backward": 3, "weight": 2, "transfer": 1, "overlapped": 7}},
    {"placement": "interleaved", "chunks": 2},
    {"placement": "v-shape", "memory": {"activation": 1, "capacity": 6}},
    {"placement": "wave", "chunks": 3},
    {"placement": "bidirectional"},
)


@pytest.mark.parametrize("keys", daily(PLACEMENTS, 2), ids=str)
def test_stretched_schedules_are_valid_for_any_number_of_micro_batches(keys: dict[str, object]) -> None:
    short = problem(4, 24, objective="span", **keys)
    schedules = list(list_schedules(short))[::30]
    for heuristic in HEURISTICS:
        try:
            schedules.append(heuristic.order(short))
        except DoesNotApply:
            continue
    stretches = 0
    for number, schedule in enumerate(schedules):
        timeline = best_times(short, schedule)
        breaks = {violation.rule for violation in validate(timeline)}
        extendable = best_extendable([timeline])
        long = replace(short, microbatches=61 if (number + DAY) % 3 == 0 else 25)
        if extendable is not None:
            stretches += 1
            found = best_times(long, extendable.over(long))
            assert {violation.rule for violation in validate(found)} <= breaks, schedule.name
    assert stretches


def test_what_is_not_repeated_is_not_stretched() -> None:
    short = problem(4, 4)
    assert best_extendable([best_times(short, HEURISTICS["gpipe"].order(short))]) is None


def gpt_1_5b(microbatches: int, activations: int) -> Problem:
    """The 1.5B profile of the Zero Bubble paper on 8 devices."""
    return problem(
        8,
        microbatches,
        times={"forward": 18.546, "backward": 18.097, "weight": 9.321, "transfer": 0.762},
        memory={"activation": 131, "freed_by_backward": 83, "capacity": 131 * activations},
        objective="span",
    )


def test_only_much_longer_problems_are_shortened() -> None:
    assert shortened(gpt_1_5b(64, 8)) is None
    short = shortened(gpt_1_5b(1000, 8))
    assert short is not None
    assert short.microbatches == 64
    many = shortened(problem(16, 1000))
    assert many is not None
    assert many.microbatches == ReplicationParams().short_passes // (3 * 16)


def test_a_long_problem_is_proved_optimal_by_way_of_a_shorter_one() -> None:
    solution = solve(gpt_1_5b(1000, 8), counted(1))
    assert solution.status is Status.OPTIMAL
    assert solution.timeline is not None
    assert validate(solution.timeline) == []
    assert solution.timeline.problem.microbatches == 1000
