"""Mirrored schedules: what one chain does on half of the devices is a schedule of both on all, of the same value."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from threading import Event

import pytest

from pipesched.problem.placement import bidirectional
from pipesched.problem.problem import Problem
from pipesched.schedule.rescale import value_of
from pipesched.validation.validator import validate
from solver.construction.list_scheduling import list_schedules, sequential
from solver.construction.mirrored import folded, unfolded
from solver.construction.timing import best_times
from solver.engine.construction.sequential import Sequential
from solver.engine.engine import ENGINE
from solver.engine.run import run
from solver.engine.search import Search
from solver.engine.subsolvers.mirrored_schedules import MirroredSchedules
from solver.engine.subsolvers.tuned_lists import TunedListSchedules
from tests.support.counted import counted
from tests.support.makers import problem

BLOCKS = {"forward": 10, "backward": 10, "weight": 10, "overlapped": 24}


def both_ways(seed: int) -> Problem:
    """Even or odd micro-batches, blocks, B and W or full backwards, tight memory, ways to the next device."""
    random = Random(seed)
    devices = random.choice((2, 4, 6))

    def some(low: int, high: int) -> list[int]:
        return [random.randint(low, high) for _ in range(devices)]

    times: dict[str, object] = {"forward": some(5, 9), "backward": some(5, 9), "transfer": random.randint(0, 2)}
    if random.random() < 0.7:
        times["weight"] = some(3, 6)
    if random.random() < 0.7:
        times["overlapped"] = some(9, 20)
    memory = {"capacity": random.randint(3, 6), "static": random.randint(0, 1)}
    objective = random.choice(("makespan", "span"))
    microbatches = random.randint(2, 9)
    return problem(devices, microbatches, placement="bidirectional", times=times, memory=memory, objective=objective)


def test_a_schedule_of_half_of_the_devices_is_one_of_all() -> None:
    same = 0
    for seed in range(40):
        one = both_ways(seed)
        half = folded(one)
        assert half is not None
        assert (half.devices, half.microbatches) == (one.devices // 2, (one.microbatches + 1) // 2)
        assert half.room == one.room[: half.devices]
        for schedule in (sequential(half), next(list_schedules(half))):
            small, whole = best_times(half, schedule), best_times(one, unfolded(one, schedule))
            assert validate(whole) == [], seed
            if one.microbatches % 2 == 0 and not any(stage.transfer for stage in one.stages):
                assert value_of(one, whole) == value_of(half, small), seed
                same += 1
    assert same > 5


def test_only_mirror_images_are_folded() -> None:
    one = problem(4, 6, placement="bidirectional", times=BLOCKS, memory={"capacity": 4})
    assert folded(one) is not None
    longer = [10] * 7 + [11]
    assert folded(one.with_stages(forward=longer)) is None
    assert folded(one.with_room([4, 4, 4, 5])) is None
    assert folded(problem(4, 6)) is None
    assert folded(problem(4, 6, placement="v-shape")) is None
    assert folded(replace(one, microbatches=1)) is None
    # The middle device of three would be its own image.
    assert folded(replace(one, placement=bidirectional(3), stages=one.stages[:6], pools=one.pools[:3])) is None


@pytest.mark.parametrize("microbatches", (8, 7))
def test_the_search_goes_on_from_the_best_mirrored_schedule(microbatches: int) -> None:
    """Compared with the list schedules of half of the devices, which its search begins with."""
    one = problem(4, microbatches, placement="bidirectional", times=BLOCKS, memory={"capacity": 4})
    half = folded(one)
    assert half is not None
    best = min(value_of(half, best_times(half, schedule)) for schedule in list_schedules(half))
    part = next(part for part in ENGINE.members if isinstance(part, MirroredSchedules))
    short = replace(part, engine=replace(part.engine, subsolvers=(TunedListSchedules(),)))
    engine = replace(ENGINE, construction=(Sequential(),), subsolvers=(short,))
    search = Search(one, counted(1), lambda _: None, Event(), engine)
    run(search)
    assert search.incumbent.value is not None
    assert search.incumbent.value <= best
    assert search.starts()
    assert part.serves(search)
    other = Search(problem(2, 2), counted(1), lambda _: None, Event(), engine)
    assert not part.serves(other)
