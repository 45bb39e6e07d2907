"""Ramps solved as problems of their own: valid, no worse on any placement, better in little memory, the middle kept."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random
from threading import Event

import pytest

from pipesched.problem.problem import Objective, Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.timeline import Timeline
from pipesched.validation.validator import validate
from solver.cyclic import warmup_cooldown
from solver.cyclic.problem_period import best_period, best_unrolled
from solver.cyclic.warmup_cooldown import cool_down, improve_warmup_cooldown, warm_up
from solver.limits import Limits
from solver.local_search.window_lns import placed_in
from tests.support.brute_force import tiny_problem
from tests.support.makers import gpt_1_5b, problem

OBJECTIVES = (Objective.MAKESPAN, Objective.SPAN)
SURE = Limits(workers=1, deterministic=0.4)
PLACEMENTS: tuple[dict[str, object], ...] = (
    {"placement": "linear"},
    {"placement": "interleaved", "chunks": 2},
    {"placement": "v-shape"},
    {"placement": "bidirectional"},
)


def unrolled(one: Problem) -> Timeline:
    """The best pattern found, over all micro-batches."""
    pattern = best_period(one, SURE).pattern
    assert pattern is not None
    return best_unrolled(pattern, one)


@pytest.mark.parametrize(
    ("placement", "objective"), list(zip(PLACEMENTS, ("makespan", "span") * 2, strict=True)), ids=str
)
def test_ramps_are_valid_and_no_worse(placement: dict[str, object], objective: str) -> None:
    times = {"forward": 5, "backward": 6, "weight": 4, "transfer": 1}
    memory = {"activation": 1, "capacity": 3}
    before = unrolled(problem(3, 10, times=times, memory=memory, objective=objective, **placement))
    after = improve_warmup_cooldown(before, SURE, 60, Event())
    assert not validate(after)
    assert measure(after).value(before.problem.objective) <= measure(before).value(before.problem.objective)


def test_with_half_an_activation_a_stage_they_are_better_and_the_middle_keeps_its_order() -> None:
    before = unrolled(gpt_1_5b(4, 24, 2))
    after = improve_warmup_cooldown(before, SURE, 60, Event())
    assert not validate(after)
    assert measure(after).span < measure(before).span
    begin, end = warm_up(before)[1], cool_down(before)[0]
    assert begin < end
    for device in range(4):
        middle = [p for p in before.schedule.passes_on(device) if begin <= before.start(p) < end]
        assert [p for p in after.schedule.passes_on(device) if p in set(middle)] == middle


@pytest.mark.parametrize("seed", (1101, 1103, 1104))
def test_passes_of_no_length_do_no_harm(seed: int) -> None:
    """In a window they may stand anywhere at one moment, also where memory has no room; seed 1101 found one."""
    random = Random(seed)
    one = tiny_problem(random)
    one = replace(one, microbatches=4 * one.devices + random.randint(0, 2), objective=random.choice(OBJECTIVES))
    pattern = best_period(one, SURE).pattern
    if pattern is not None:
        before = best_unrolled(pattern, one)
        after = improve_warmup_cooldown(before, SURE, 60, Event())
        assert not validate(after)
        assert measure(after).value(one.objective) <= measure(before).value(one.objective)


def test_a_stop_leaves_them_as_they_are() -> None:
    stop = Event()
    stop.set()
    before = unrolled(problem(4, 16, memory={"activation": 1, "capacity": 2}))
    assert improve_warmup_cooldown(before, SURE, 60, stop) is before


def test_stating_a_window_counts_as_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []

    def slowly(timeline: Timeline) -> object:
        time.sleep(0.1)
        return placed_in(timeline)

    def solved(_window: object, _seed: int, seconds: float, *_: object) -> tuple[bool, None]:
        given.append(seconds)
        return True, None

    monkeypatch.setattr(warmup_cooldown, "placed_in", slowly)
    monkeypatch.setattr(warmup_cooldown, "solve_window", solved)
    improve_warmup_cooldown(unrolled(problem(2, 6)), Limits(workers=1), 60.0, Event())
    assert len(given) == 2
    assert max(given) < 59.95
