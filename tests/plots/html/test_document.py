"""The chart's document and page: the numbers are the schedule's, nothing is loaded from elsewhere, and it stays small."""

from __future__ import annotations

import hashlib
import re
from itertools import accumulate, pairwise
from pathlib import Path

import pytest

import plots.html.assets
from heuristics.catalogue import HEURISTICS
from pipesched.schedule.metrics import memory_steps
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.html.assets import script
from plots.html.document import document
from plots.html.page import page
from tests.support.makers import problem, schedule
from tests.support.self_contained import loaded_by, packed_in, scripts_of

FOLDER = Path(plots.html.assets.__file__).parent
TASKS = {
    "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 4}],
    "backward": [{"name": "attn", "time": 6}],
}


def timeline(name: str, **keys: object) -> Timeline:
    one = problem(4, 8, **({"memory": {"capacity": 20, "static": 3, "activation": 1.5}} | keys))
    return simulate(one, HEURISTICS[name].order(one))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("zb-h1", {}),
        ("zbv", {"placement": "v-shape"}),
        ("dualpipe", {"placement": "bidirectional"}),
        ("1f1b-overlap", {"times": {"forward": 1, "backward": 1.5, "weight": 1, "overlapped": 3}}),
    ],
)
def test_the_numbers_of_the_page_are_the_schedules(name: str, keys: dict[str, object]) -> None:
    one = timeline(name, **keys)
    found = packed_in(page(one, "a", "b"), "chart")
    for device, order in enumerate(one.schedule.orders):
        flat = found["boxes"][device]
        starts = list(accumulate(flat[0::4]))
        drawn = {
            (f"{found['styles'][style]['pass']}.{j}", start, start + long)
            for start, long, j, style in zip(starts, flat[1::4], flat[2::4], flat[3::4], strict=True)
        }
        assert drawn == {(str(p), one.start(p), one.end(p)) for slot in order for p in slot}
        steps = found["memory"]["steps"][device]
        last = dict(zip(accumulate(steps[0::2]), steps[1::2], strict=True))
        assert last == {tick: 3 + level * float(one.problem.resolution) for tick, level in memory_steps(one, device)}
    assert found["memory"]["capacity"] == [20] * 4 and found["memory"]["static"] == [3] * 4
    halves = {style["half"] for style in found["styles"]}
    assert halves == ({0, 1, 2} if name == "1f1b-overlap" else {0})


def test_the_critical_path_names_boxes_that_follow_each_other_to_the_end() -> None:
    found = document(timeline("1f1b", times={"forward": 2, "backward": 3, "weight": 1, "transfer": 0.5}))
    path = list(zip(found["critical"][0::2], found["critical"][1::2], strict=True))
    boxes = []
    for device, place in path:
        flat = found["boxes"][device]
        start = sum(flat[0 : 4 * place + 1 : 4])
        boxes.append((start, start + flat[4 * place + 1]))
    assert boxes[0][0] == 0 and boxes[-1][1] == found["end"]
    assert all(after[0] - before[1] in (0, 1) for before, after in pairwise(boxes))
    assert document(timeline("1f1b"), critical=False)["critical"] == []


def test_a_gap_names_the_task_whose_tensor_ends_it() -> None:
    found = document(timeline("1f1b", times={"forward": 2, "backward": 3, "weight": 1, "transfer": 0.5}))

    def ends(device: int, place: int) -> tuple[int, int]:
        flat = found["boxes"][device]
        start = sum(flat[0 : 4 * place + 1 : 4])
        return start, start + flat[4 * place + 1]

    for device, flat in enumerate(found["waits"]):
        idle_before = {
            place for place in range(len(found["boxes"][device]) // 4)
            if ends(device, place)[0] > (ends(device, place - 1)[1] if place else 0)
        }  # fmt: skip
        gaps = list(zip(flat[0::3], flat[1::3], flat[2::3], strict=True))
        assert {place for place, _, _ in gaps} == idle_before
        for place, other, cause in gaps:
            assert abs(other - device) == 1 and ends(device, place)[0] - ends(other, cause)[1] == 1


def test_boxes_of_tasks_have_their_names_and_streams_their_lanes() -> None:
    one = problem(1, 1, streams=["compute", "comm"], tasks=TASKS, times={})
    data = document(simulate(one, HEURISTICS["1f1b"].order(one)))
    assert [(style["task"], style["lane"]) for style in data["styles"]] == [("attn", 0), ("dispatch", 1), ("attn", 0)]
    assert [lane["stream"] for lane in data["lanes"]] == ["compute", "comm"]
    plain = document(timeline("1f1b"))
    assert len(plain["lanes"]) == 1 and not any(style["task"] for style in plain["styles"])


def test_memory_on_the_host_is_told() -> None:
    offload = {"out": 1, "in": 1, "on": ["d2h", "h2d"], "amount": 1}
    one = problem(1, 1, memory={"activation": 1.5, "offload": offload}, streams=["compute", "d2h", "h2d"])
    (host,) = document(simulate(one, schedule("F0.0 O0.0 L0.0 BW0.0")))["memory"]["hosts"]
    assert host["device"] == 0 and host["steps"] == [
        0, 0, 1, 1, 1, 1, 1, 0,
    ]  # from the start of the way out to the end of that back  # fmt: skip


def test_the_page_is_whole_and_escapes_what_a_user_wrote() -> None:
    hostile = '</script><script>alert("1")</script>'
    one = problem(2, 2, name=hostile, memory={"unit": hostile, "capacity": 9, "activation": 1}, time_unit="'\"<b>")
    text = page(simulate(one, HEURISTICS["1f1b"].order(one)), hostile, "a & b")
    assert loaded_by(text) == []
    assert scripts_of(text) == scripts_of(page(timeline("1f1b"), "a", "b")) == 3
    assert "alert" not in text.replace("&lt;script&gt;alert(&quot;1&quot;)", "")
    assert "a &amp; b" in text
    assert packed_in(text, "chart")["memory"]["unit"] == hostile


def test_a_large_schedule_makes_a_small_page() -> None:
    one = problem(16, 128)
    text = page(simulate(one, HEURISTICS["1f1b"].order(one)), "a", "b")
    assert len(text) - len(script()) < 10 * 2 * 16 * 128


def test_the_library_is_what_its_readme_says() -> None:
    """So that a change of a file that is not ours is seen, and the licence stays beside it."""
    for folder in (FOLDER / "vendor").iterdir():
        said = dict(re.findall(r"^\| `(.+?)` \| `([0-9a-f]{64})` \|$", (folder / "README.md").read_text(), re.M))
        files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}
        assert said == {name: sha for name, sha in files.items() if name != "README.md"} and "LICENSE" in said


def test_every_part_of_the_chart_is_in_its_script() -> None:
    for part in (FOLDER / "chart").glob("*.js"):
        assert part.read_text() in script()
