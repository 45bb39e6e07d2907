"""Published schedules that a search had no time for are tried, and the answer is never worse than one of them."""

from __future__ import annotations

from dataclasses import replace

from pipesched.results.solution import Status
from pipesched.schedule.metrics import measure
from pipesched.validation.validator import validate
from solver.analysis.published_comparison import all_tried
from solver.construction.list_scheduling import sequential
from solver.construction.timing import best_times
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import FULL
from tests.support.makers import problem as make_problem

LIMITS = counted(1)


def test_a_published_schedule_better_than_what_was_found_is_the_answer() -> None:
    problem = make_problem(4, 8, times=dict(FULL))
    slow = best_times(problem, sequential(problem))
    found = solve(problem, LIMITS)
    assert found.value_ticks is not None
    short = replace(found, timeline=slow, metrics=measure(slow), status=Status.FEASIBLE, candidates=())
    answer = all_tried(short, ["1f1b", "gpipe"], LIMITS)
    assert all_tried(replace(short, candidates=answer.candidates), [], LIMITS).timeline == answer.timeline
    assert answer.value_ticks == found.value_ticks < measure(slow).makespan_ticks
    assert answer.timeline is not None and validate(answer.timeline) == []
    assert answer.status is (Status.OPTIMAL if answer.value_ticks == found.lower_bound_ticks else Status.FEASIBLE)
    assert all_tried(replace(found, candidates=()), ["gpipe"], LIMITS).timeline == found.timeline
    none = replace(short, timeline=None, metrics=None, status=Status.UNKNOWN)
    assert all_tried(none, ["gpipe"], LIMITS).value_ticks == found.value_ticks
