"""Ramps solved as problems of their own: valid, no worse on any placement, better in little memory, the middle kept."""

from __future__ import annotations

from threading import Event

import pytest

from pipesched.metrics import measure
from pipesched.timeline import Timeline
from pipesched.validator import validate
from solver.limits import Limits
from solver.periodic_problem import best_period, best_unrolled
from solver.ramps import better_ramps, ramp_down, ramp_up
from tests.makers import problem

SURE = Limits(workers=1, deterministic=1.0)
PLACEMENTS: tuple[dict[str, object], ...] = (
    {"placement": "linear"},
    {"placement": "interleaved", "chunks": 2},
    {"placement": "v-shape"},
    {"placement": "bidirectional"},
)


def unrolled(microbatches: int, **document: object) -> Timeline:
    """The best pattern found, over so many micro-batches."""
    one = problem(4, microbatches, **document)
    pattern = best_period(one, SURE).pattern
    assert pattern is not None
    return best_unrolled(pattern, one)


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
@pytest.mark.parametrize("objective", ("makespan", "span"))
def test_ramps_are_valid_and_no_worse(placement: dict[str, object], objective: str) -> None:
    times = {"forward": 5, "backward": 6, "weight": 4, "transfer": 1}
    before = unrolled(16, times=times, memory={"activation": 1, "capacity": 4}, objective=objective, **placement)
    after = better_ramps(before, SURE, 60, Event())
    assert not validate(after)
    assert measure(after).value(before.problem.objective) <= measure(before).value(before.problem.objective)


def test_with_half_an_activation_a_stage_they_are_better_and_the_middle_keeps_its_order() -> None:
    before = unrolled(
        24,
        times={"forward": 18.522, "backward": 18.086, "weight": 9.337, "transfer": 0.601},
        memory={"activation": 131, "freed_by_backward": 83, "capacity": 262},
        objective="span",
    )
    after = better_ramps(before, SURE, 60, Event())
    assert not validate(after)
    assert measure(after).span < measure(before).span
    begin, end = ramp_up(before)[1], ramp_down(before)[0]
    assert begin < end
    for device in range(4):
        middle = [p for p in before.schedule.passes_on(device) if begin <= before.start(p) < end]
        assert [p for p in after.schedule.passes_on(device) if p in set(middle)] == middle


def test_a_stop_leaves_them_as_they_are() -> None:
    stop = Event()
    stop.set()
    before = unrolled(16, memory={"activation": 1, "capacity": 2})
    assert better_ramps(before, SURE, 60, stop) is before
