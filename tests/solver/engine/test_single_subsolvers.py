"""Parts of a solve by themselves: published schedules, long problems, the seconds that each took, and no time left."""

from __future__ import annotations

from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest

from pipesched.results.solution import Solution, Status
from pipesched.validation.validator import validate
from solver.cyclic.solve_period import solve_period
from solver.engine import clock
from solver.engine.analytic_bounds import AnalyticBounds
from solver.engine.clock import Clock, PartTimes
from solver.engine.construction.published import PublishedSchedules
from solver.engine.construction.published_extended import PublishedExtended
from solver.engine.search import Engine, Search
from solver.limits import Limits
from solver.planning.budget import Budget
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

LIMITS = counted(2)
# 24,000 passes; with two activations a device, round trips decide.
LONG = problem(4, 2000, memory={"activation": 1, "capacity": 2})


def test_a_very_long_problem_with_little_memory_is_proved_optimal() -> None:
    found = solve(replace(LONG, microbatches=150), LIMITS)
    assert found.status is Status.OPTIMAL
    assert found.certificate is not None and found.certificate.kind == "decision diagram"


def test_seconds_add_up_by_name_also_where_a_part_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, now = PartTimes(), [100.0]
    monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with parts.of("one"):
        now[0] += 2
    now[0] += 8
    with parts.of("other"):
        now[0] += 1
    with pytest.raises(ValueError), parts.of("one"):
        now[0] += 3
        raise ValueError
    assert parts.taken() == (("one", 5), ("other", 1))


def names(phase: PublishedSchedules) -> list[str]:
    """Of the schedules that were tried, of a V with memory for V-Min alone."""
    engine = Engine(AnalyticBounds(), (phase,), (), Search.solution, raise_bounds=False)
    times = {"forward": 14.4, "backward": 14.3, "weight": 9.6, "transfer": 1.6}
    little = problem(6, 12, placement="v-shape", times=times, memory={"activation": 1, "capacity": 6}, objective="span")
    found = solve(little, counted(1), engine=engine)
    return [one.name for one in found.candidates]


def test_of_many_passes_schedules_that_improve_one_that_does_not_fit_are_left_out() -> None:
    every, some = names(PublishedSchedules()), names(PublishedSchedules(compare_up_to_passes=0))
    assert {"v-min-cost-aware", "v-half-cost-aware", "zbv-cost-aware"} <= set(every)
    assert set(every) - set(some) == {"v-half-cost-aware", "zbv-cost-aware"}


ENGINE = Engine(AnalyticBounds(), (PublishedExtended(),), (), Search.solution, raise_bounds=False)


def found(microbatches: int, capacity: int, placement: str = "v-shape") -> Solution:
    """Of 6 devices; times as those of GPT, whose weight passes take half as long as its forwards."""
    times = {"forward": 18.5, "backward": 18, "weight": 9.3, "transfer": 0.6}
    memory = {"activation": 1, "capacity": capacity}
    one = problem(6, microbatches, placement=placement, times=times, memory=memory, objective="span")
    return solve(one, counted(1), engine=ENGINE)


@pytest.mark.parametrize(("capacity", "name"), [(12, "zbv"), (8, "v-half"), (6, "v-min")])
def test_the_roomiest_v_that_fits_is_extended(capacity: int, name: str) -> None:
    one = found(700, capacity)
    assert one.timeline is not None
    assert not validate(one.timeline)
    assert any(moment.phase.startswith(f"{name} of ") for moment in one.history)
    assert one.gap is not None and one.gap < 0.2


def test_one_that_meets_the_bound_ends_the_search_with_a_note() -> None:
    one = found(700, 12)
    assert one.status is Status.OPTIMAL
    assert any("with its middle repeated" in note for note in one.notes)
    assert not any("with its middle repeated" in note for note in found(700, 6).notes)


@pytest.mark.parametrize(("capacity", "name"), [(6, "zb-h1"), (10, "zb-h1"), (11, "zb-h2")])
def test_a_line_of_stages_has_the_handcrafted_ones(capacity: int, name: str) -> None:
    one = found(1400, capacity, "linear")
    assert one.gap is not None and one.gap < 0.01
    assert next(moment.phase for moment in one.history if " of " in moment.phase and moment.value).startswith(name)


def test_problems_of_fewer_passes_are_left_alone() -> None:
    assert found(100, 12).timeline is None


LATE = Limits(seconds=0.0)


def test_clocks_and_budgets_end_at_zero() -> None:
    clock, budget = Clock(LATE), Budget(LATE, Event())
    for left in (clock.left(), clock.left(0.3), clock.allowed(), budget.left):
        assert left == 0
        assert replace(LATE, seconds=left).seconds == 0
    assert budget.over()


def test_a_period_is_looked_for_without_any_time() -> None:
    one = problem(2, 4, times={"forward": 2, "backward": 2, "overlapped": 3}, objective="period")
    assert solve_period(one, LATE).lower_bound_ticks > 0
