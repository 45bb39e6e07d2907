"""The HTML page: its numbers are the schedule's, it needs nothing from elsewhere, and it stays small."""

from __future__ import annotations

import json
import re
from itertools import accumulate

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.page import document, page
from tests.support.makers import problem


def timeline(schedule: str, **keys: object) -> Timeline:
    one = problem(4, 8, **({"memory": {"capacity": 20, "static": 3, "activation": 1.5}} | keys))
    return simulate(one, HEURISTICS[schedule].order(one))


@pytest.mark.parametrize(
    ("schedule", "keys"),
    [
        ("zb-h1", {}),
        ("zbv", {"placement": "v-shape"}),
        ("dualpipe", {"placement": "bidirectional"}),
        ("1f1b-overlap", {"times": {"forward": 1, "backward": 1.5, "weight": 1, "overlapped": 3}}),
    ],
)
def test_the_numbers_of_the_page_are_the_schedules(schedule: str, keys: dict[str, object]) -> None:
    one = timeline(schedule, **keys)
    held = re.search(r"const DATA=(.*?);\n", page(one, "a", "b"))
    assert held
    found = json.loads(held[1])
    for device, order in enumerate(one.schedule.orders):
        flat = found["boxes"][device]
        starts = list(accumulate(flat[0::4]))
        drawn = {
            (f"{found['styles'][style][0]}.{j}", start, start + long)
            for start, long, j, style in zip(starts, flat[1::4], flat[2::4], flat[3::4], strict=True)
        }
        assert drawn == {(str(p), one.start(p), one.end(p)) for slot in order for p in slot}
        steps = found["memory"][device]
        last = dict(zip(accumulate(steps[0::2]), steps[1::2], strict=True))
        assert last == {tick: 3 + level * float(one.problem.resolution) for tick, level in memory_steps(one, device)}
    assert found["capacity"] == [20] * 4


def test_the_page_is_whole_and_escapes_what_a_user_wrote() -> None:
    text = page(timeline("1f1b"), "<script>alert(1)</script>", "a & b")
    assert not re.search(r"https?:|src=|href=|@import", text)
    assert "<script>alert" not in text
    assert "a &amp; b" in text
    data = document(timeline("1f1b", memory={"unit": "</script>"}))
    assert data["memoryUnit"] == "</script>"
    assert text.count("</script>") == page(timeline("1f1b", memory={"unit": "</script>"}), "", "").count("</script>")


def test_boxes_of_tasks_have_their_names_and_streams_their_lanes() -> None:
    tasks = {
        "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 4}],
        "backward": [{"name": "attn", "time": 6}],
    }
    one = problem(1, 1, streams=["compute", "comm"], tasks=tasks, times={})
    data = document(simulate(one, HEURISTICS["1f1b"].order(one)))
    assert [style[5] for style in data["styles"]] == ["attn", "dispatch", "attn"]
    (name, middle), (_, _, _, top, bottom, _) = data["lanes"][0], data["styles"][1]
    assert (name, len(data["lanes"])) == ("comm", 1) and top < middle < bottom
    plain = document(timeline("1f1b"))
    assert plain["lanes"] == [] and plain["rowShare"] == 1 and all(len(style) == 5 for style in plain["styles"])


def test_a_large_schedule_makes_a_small_page() -> None:
    one = problem(16, 128)
    assert len(page(simulate(one, HEURISTICS["1f1b"].order(one)), "a", "b")) < 40 * 2 * 16 * 128
