"""The seconds that parts of the engine took."""

from __future__ import annotations

from time import sleep

import pytest

from solver.engine.part_times import PartTimes


def test_seconds_add_up_by_name_also_where_a_part_is_ended() -> None:
    parts = PartTimes()
    with parts.of("one"):
        sleep(0.02)
    with parts.of("other"):
        pass
    with pytest.raises(ValueError), parts.of("one"):
        sleep(0.02)
        raise ValueError
    assert [name for name, _ in parts.taken()] == ["one", "other"]
    assert 0.04 <= dict(parts.taken())["one"] < 1
