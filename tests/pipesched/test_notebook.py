"""What a notebook shows of problems, orders, timelines and solutions: self-contained, no one's markup, small."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched import problem_from, read_problem, simulate
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule, schedule_of
from pipesched.schedule.timeline import Timeline

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HOSTILE = '"><script>alert(1)</script>&\x1b'
SVG = "{http://www.w3.org/2000/svg}"


def made(name: str, **keys: object) -> Timeline:
    times = {"forward": 1, "backward": 1, "weight": 1}
    problem = problem_from({"devices": 2, "microbatches": 2, "times": times, **keys})
    return simulate(problem, HEURISTICS[name].order(problem))


def of_file(file: str, name: str) -> Timeline:
    problem = read_problem(EXAMPLES / f"{file}.yaml")
    return simulate(problem, HEURISTICS[name].order(problem))


def picture(shown: Timeline | Schedule) -> ET.Element:
    found = re.search(r"<svg.*</svg>", shown._repr_html_(), re.DOTALL)
    assert found
    return ET.fromstring(found[0])


def test_every_pass_is_a_box_that_says_when_it_runs() -> None:
    timeline = made("zb-h1", time_unit="ms")
    tips = {title.text for title in picture(timeline).iter(f"{SVG}title")}
    assert "F0.1: 1 to 2 ms" in tips
    assert len(tips) == len(timeline.schedule.columns)
    left = {title.text: float(box.attrib["x"]) for box in picture(timeline).iter(f"{SVG}rect") for title in box}
    assert left["F0.0: 0 to 1 ms"] < left["F0.1: 1 to 2 ms"] < left["B0.0: 3 to 4 ms"]


def test_an_order_has_a_box_a_pass_though_it_has_no_times() -> None:
    schedule = made("zb-h1").schedule
    assert {title.text for title in picture(schedule).iter(f"{SVG}title")} == {str(p) for p in schedule.passes()}
    assert "no pass" not in schedule_of([[], []])._repr_html_()


@pytest.mark.parametrize("name", ["problem_from", "schedule_of"])
def test_whatever_is_imported_first_shows_itself(name: str) -> None:
    given = {
        "problem_from": '{"devices": 1, "microbatches": 1, "times": {"forward": 1, "backward": 1}}',
        "schedule_of": "[[]]",
    }
    script = f"from pipesched import {name} as make; print(make({given[name]})._repr_html_())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith("<div>")


@pytest.mark.parametrize(
    ("file", "name"), [("dualpipe-blocks", "dualpipe"), ("kimi-k2-mini", "kimi-k2"), ("wave", "hanayo")]
)
def test_boxes_stay_inside_the_picture(file: str, name: str) -> None:
    timeline = of_file(file, name)
    for shown in (timeline, timeline.schedule):
        root = picture(shown)
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for box in root.iter(f"{SVG}rect"):
            x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
            assert 0 <= x <= x + w <= width + 0.2
            assert 0 <= y <= y + h <= height


def test_a_long_schedule_is_sampled_and_stays_small() -> None:
    timeline = made("1f1b", devices=16, microbatches=512)
    assert len(timeline.schedule.columns) > 16_000
    for shown in (timeline, timeline.schedule):
        assert len(shown._repr_html_()) < 400_000
    root = picture(timeline)
    colours = {path.attrib["fill"] for path in root.iter(f"{SVG}path") if path.attrib["fill"] != "none"}
    assert len(colours) == 2, "forwards and backwards are both seen"


def everything(problem: Problem) -> list[str]:
    timeline = simulate(problem, HEURISTICS["1f1b"].order(problem))
    named = Schedule(timeline.schedule.orders, HOSTILE)
    return [shown._repr_html_() for shown in (problem, timeline, named, Timeline(problem, named, timeline.starts))]


def test_names_are_shown_and_never_run() -> None:
    times = {"forward": 1, "backward": 1}
    memory = {"capacity": 4, "unit": HOSTILE}
    document = {
        "devices": 2, "microbatches": 2, "times": times, "memory": memory, "name": HOSTILE, "time_unit": HOSTILE,
    }  # fmt: skip
    for page in everything(problem_from(document)):
        assert "<script" not in page
        assert "\x1b" not in page
        assert "&lt;script&gt;" in page
        assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_a_problem_is_a_table_of_its_stages() -> None:
    times = {"forward": [1, 1, 2, 1], "backward": 2, "weight": 1, "transfer": 0.5}
    memory = {"unit": "GiB", "capacity": 12, "static": 2, "activation": 3}
    page = problem_from(
        {"name": "mine", "devices": 4, "microbatches": 2, "time_unit": "ms", "times": times, "memory": memory}
    )._repr_html_()
    rows = [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", page)]
    assert rows[0] == ["stage", "device", "forward", "backward", "weight", "fused", "transfer", "activation (GiB)"]
    assert [row[:3] for row in rows[1:]] == [["0 – 1", "0 – 1", "1 ms"], ["2", "2", "2 ms"], ["3", "3", "1 ms"]]
    assert "mine: 4 devices, 2 micro-batches" in page
    assert "memory of a device (GiB): 12; of which static: 2" in page
