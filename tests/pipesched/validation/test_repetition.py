"""The period of an order: what the search finds repeats in it, and no order repeats in less than the bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from commands.reports.checks.schedule_check import value_text
from pipesched.files.schedule_file import ScheduleFile
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from pipesched.validation.repetition import repeats_every
from solver.cyclic.solve_period import solve_period
from tests.support.counted import counted
from tests.support.makers import problem, schedule

WORK = counted(1)
SPLIT: Mapping[str, Any] = {"forward": 2, "backward": 2, "weight": 1, "transfer": 1}


def periodic(**keys: Any) -> Problem:
    return problem(keys.pop("devices", 2), keys.pop("microbatches", 12), objective="period", **keys)


@pytest.mark.parametrize(
    "one",
    [
        periodic(times=SPLIT),
        periodic(times=SPLIT, memory={"capacity": 1}),
        periodic(devices=3, microbatches=24, times=SPLIT, memory={"capacity": 2}),
        periodic(times={"forward": 2, "backward": 3, "overlapped": 4}, memory={"capacity": 2}),
        periodic(times=SPLIT, placement="v-shape", microbatches=16),
    ],
)
def test_what_the_search_finds_repeats_and_nothing_below_the_bound(one: Problem) -> None:
    found = solve_period(one, WORK)
    assert found.timeline is not None and found.metrics is not None and found.metrics.period_ticks is not None
    period, own = found.metrics.period_ticks, found.timeline.problem
    for more in (0, 1, 10):
        assert repeats_every(own, found.timeline.schedule, period + more)
    assert not repeats_every(own, found.timeline.schedule, found.lower_bound_ticks - 1)
    file = ScheduleFile.of(found, found.timeline)
    assert value_text(file).startswith(", with a period of")
    false = replace(file, value_ticks=found.lower_bound_ticks - 1)
    assert value_text(false).endswith("is not verified")


def test_precedences_memory_and_blocks_count() -> None:
    one = periodic(devices=1, microbatches=4, times={"forward": 2, "backward": 3})
    in_turn = schedule("F0.0 BW0.0 F0.1 BW0.1 F0.2 BW0.2 F0.3 BW0.3")
    assert repeats_every(one, in_turn, 5) and not repeats_every(one, in_turn, 4)
    ahead = schedule("F0.0 F0.1 BW0.0 F0.2 BW0.1 F0.3 BW0.2 BW0.3")
    assert repeats_every(one, ahead, 5)
    # With memory for one activation the second order does not fit, though it is as fast.
    assert not repeats_every(
        periodic(devices=1, microbatches=4, times={"forward": 2, "backward": 3}, memory={"capacity": 1}), ahead, 5
    )
    # Two devices, one micro-batch under way: it walks down and back, 2 + 1 + 2 + 3 + 1 + 3 ticks.
    two = periodic(microbatches=4, times={"forward": 2, "backward": 3, "transfer": 1})
    alone = schedule(*(" ".join(f"F{s}.{j} BW{s}.{j}" for j in range(4)) for s in range(2)))
    assert repeats_every(two, alone, 12) and not repeats_every(two, alone, 11)


def test_orders_that_repeat_nothing_are_not_verified() -> None:
    one = periodic(devices=1, microbatches=4, times={"forward": 2, "backward": 3})
    gpipe = schedule("F0.0 F0.1 F0.2 F0.3 BW0.0 BW0.1 BW0.2 BW0.3")
    assert not repeats_every(replace(one, microbatches=40), gpipe, 4)
    assert "not verified" in value_text(ScheduleFile(simulate(one, gpipe), value_ticks=4))
