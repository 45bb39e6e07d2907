"""Activations that move to other devices: what the searches find."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from pipesched.problem.relaxed.ample_memory import why_never_limited
from pipesched.results.analysis.memory_scale import MemoryScale
from pipesched.results.solution import Status
from pipesched.schedule.memory_elsewhere import steps_elsewhere
from pipesched.schedule.metrics import measure, memory_steps
from pipesched.validation.validator import validate
from solver.analysis.memory_levels import MemoryLevels
from solver.solve import solve
from tests.support.counted import counted
from tests.support.daily import daily

SURE = counted(5.0)


def three(capacity: list[int], **offload: object) -> Problem:
    """A pipeline whose first device has room for two activations of the three that it wants."""
    document: dict[str, Any] = {
        "devices": 3,
        "microbatches": 4,
        "times": {"forward": 10, "backward": 10, "weight": 10},
        "memory": {
            "capacity": capacity,
            "offload": {"out": 2, "in": 2, "on": "nvlink", "to": [2, "host", "host"]} | offload,
            "decide": {"offload": ["free", "never", "never"]},
        },
    }
    return problem_from(document)


@pytest.mark.parametrize(("capacity", "value"), daily([([2, 3, 1], 170), ([2, 3, 2], 154), ([2, 3, 4], 140)], 3))
def test_the_more_room_the_other_device_has_the_less_time_it_takes(capacity: list[int], value: int) -> None:
    one = three(capacity)
    found = solve(one, counted(60.0))
    assert found.status is Status.OPTIMAL and found.timeline is not None
    assert validate(found.timeline) == []
    assert one.in_units(found.value_ticks) == value
    levels = [max(level for _, level in memory_steps(found.timeline, device)) for device in range(3)]
    assert levels == list(measure(found.timeline).peak_quanta)
    assert all(level <= room for level, room in zip(levels, capacity, strict=True))
    most = max(level for _, level in steps_elsewhere(found.timeline, 2))
    assert most > 0 or capacity[2] == 1


def test_memory_that_others_may_take_limits() -> None:
    """All own activations fit, those of device 0 in addition do not."""
    assert why_never_limited(three([4, 4, 7])) is None
    assert why_never_limited(three([4, 4, 8])) is not None


def test_levels_of_memory_count_what_others_move_there() -> None:
    levels = MemoryLevels(three([9, 9, 9]))
    assert isinstance(levels.scale, MemoryScale)
    assert levels.most() == 8
