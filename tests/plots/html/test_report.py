"""Reports: self-contained, whole whatever names say, small for large problems, and alive in a real browser."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import plots.html.report
from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.problem.problem import Problem
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from plots.html.document import document
from plots.html.packed import packed
from plots.html.parts import Code, Course, Moment, Paragraph, Picture, Points, Schedules, Section, Table
from plots.html.report import report
from tests.support.browser import OVERFLOW, TIMES, chromium, complaints_of
from tests.support.makers import gpt_1_5b, problem
from tests.support.report_text import report_text
from tests.support.self_contained import loaded_by, packed_in, scripts_of

# Until what was asked for is drawn.
TWO_FRAMES = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
HOSTILE = "</script><img src=x onerror=alert(1)> \"'&`"
PROBLEM = """\
name: tiny  # a comment that is kept
devices: 2
microbatches: 4
times: {forward: 2, backward: 2, weight: 1, transfer: 0.5}
memory: {capacity: 3, unit: GiB, activation: 1}
"""
PLAN = """\
name: layers
devices: 2
microbatches: 4
layers:
  - {name: a, count: 4, forward: 1, backward: 2, memory: 1, activation: 0.5}
placement: [linear, v-shape]
chunks: [1, 2]
memory: {capacity: 8, unit: GiB}
"""


def timeline(one: Problem, name: str = "1f1b") -> Timeline:
    return simulate(one, HEURISTICS[name].order(one))


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("solve")
    (folder / "tiny.yaml").write_text(PROBLEM)
    assert main(["solve", str(folder / "tiny.yaml"), "--workers", "1", "--seed", "3", "-o", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "layers.yaml").write_text(PLAN)
    command = ["plan", str(folder / "layers.yaml"), "--workers", "1", "--time-limit", "20", "--settings", "megatron"]
    assert main([*command, "-o", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "tiny.yaml").write_text(PROBLEM)
    command = ["sweep", str(folder / "tiny.yaml"), "--jobs", "1", "--workers", "1", "--time-limit", "9"]
    fields = ["--set", "memory.capacity=0.5,2,3", "--set", "times.transfer=0.5"]
    assert main([*command, *fields, "-o", str(folder / "out")]) == 0
    return folder / "out" / "report.html"


def test_the_report_of_a_solve_answers_in_a_sentence_and_says_where_it_comes_from(solved: Path) -> None:
    said = report_text(solved)
    assert (
        "Optimal: makespan 23; no schedule is better; devices idle 13.04 % of it on average, the busiest one 13.04 % "
        in said
    )
    assert "# a comment that is kept" in said
    assert f"pipesched solve {solved.parents[1] / 'tiny.yaml'} --workers 1 --seed 3 -o " in said
    assert "\nseed | 3" in said and "\nworkers | 1" in said and "ortools" in said
    assert "Checked without the solver" in said and "is the bottleneck" in said
    order = [
        "Schedules side by side", "Passes and memory", "Why not better", "The search", "The problem",
        "How to reproduce",
    ]  # fmt: skip
    assert [line[3:] for line in said.splitlines() if line.startswith("## ") and line[3:] in order] == order
    text = solved.read_text()
    names = packed_in(text, "schedules")
    assert names[0] == "pipesched (best found)" and "1f1b" in names
    assert packed_in(text, "schedule-0") == document_of(solved)
    course = packed_in(text, "course")
    assert course["moments"][-1][1:] == [23, 23] and course["what"] == "makespan"


def document_of(path: Path) -> Any:
    from pipesched.files.schedule_file import read_schedule

    return json.loads(json.dumps(document(read_schedule(path.parent / "schedule.json").timeline)))


def test_the_report_of_a_plan_has_partition_and_placements(planned: Path) -> None:
    said = report_text(planned)
    for words in (
        "## The plan",
        "ideal",
        "\nstage | device | layers | ",
        "\nplacement | stages | value",
        "## Settings for runtimes",
        "count: 4",
    ):
        assert words in said
    assert len(packed_in(planned.read_text(), "schedules")) == len(
        [line for line in said.splitlines() if line.startswith(("linear |", "v-shape"))]
    )
    assert 'src="data:image/svg+xml;base64,' in planned.read_text()


def test_reports_load_nothing(solved: Path, planned: Path) -> None:
    assert loaded_by(solved.read_text()) == loaded_by(planned.read_text()) == []


def test_names_are_text_wherever_they_stand() -> None:
    one = problem(2, 2, name=HOSTILE, time_unit=HOSTILE, memory={"unit": HOSTILE, "activation": 1})
    parts = [
        Paragraph(HOSTILE),
        Points([HOSTILE]),
        Table([(HOSTILE, False), ("n", True)], [[HOSTILE, "1"]], HOSTILE, [0]),
        Code(HOSTILE),
        Picture(b"<svg/>", HOSTILE),
        Course(HOSTILE, HOSTILE, [Moment(0, None, 1, HOSTILE), Moment(1, 2, 1, HOSTILE)], 1),
        Schedules([(HOSTILE, timeline(one)), (HOSTILE, timeline(one))]),
    ]
    text = report(HOSTILE, HOSTILE, HOSTILE, [Section(HOSTILE, parts)])
    plain = report(
        "a", "b", "c", [Section("d", [Course("a", "", [], 1), Schedules([("x", timeline(one)), ("y", timeline(one))])])]
    )
    assert loaded_by(text) == [] and scripts_of(text) == scripts_of(plain)
    assert "<img src=x" not in text and text.count("&lt;img src=x") == 14
    assert packed_in(text, "schedules") == [HOSTILE, HOSTILE]


def test_characters_that_turn_the_direction_are_spelt_out() -> None:
    text = report("a\u202eb", "", "", [Section("s", [Code("x: 1\t# \u202e\ny: 2")])])
    assert "\u202e" not in text and "a\\u202eb" in text and "x: 1    # \\u202e\ny: 2" in text


def test_what_makes_the_page_too_large_is_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    one = timeline(problem(2, 2))
    size = len(packed(document(one)))
    monkeypatch.setattr(plots.html.report, "MOST", 3 * size)
    text = report("a", "b", "c", [Section("d", [Schedules([(f"s{n}", one) for n in range(6)])])])
    names = packed_in(text, "schedules")
    assert (
        names == ["s0", "s1", "s2"]
        and f"Left out, to keep this page small: {', '.join(f's{n}' for n in range(3, 6))}." in text
    )


def test_a_schedule_of_32_devices_and_256_microbatches_is_small() -> None:
    """Of all schedules no more than MOST is kept, so that the page stays below 5 MB; one alone is far below that."""
    one = timeline(gpt_1_5b(32, 256, 32), "zb-h1")
    assert len(packed(document(one, critical=False))) < 250_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


def test_the_report_is_alive(browser: Any, solved: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900}, color_scheme="dark")
    complaints = complaints_of(page)
    page.goto(solved.as_uri())
    chart, course = "#schedules .pipesched-canvases", "#course canvas"
    page.wait_for_selector(chart)
    page.wait_for_selector(course)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert "of tiny: 24 boxes on 2 devices" in page.get_attribute(chart, "aria-label")
    page.select_option(".choose select >> nth=0", label="1f1b")
    page.wait_for_function(
        "document.querySelector('#schedules .pipesched-canvases').getAttribute('aria-label').includes('1f1b')"
    )
    page.select_option(".choose select >> nth=1", label="pipesched (best found)")
    page.wait_for_selector(f"{chart} >> nth=1")
    assert page.locator("h3").all_inner_texts() == ["1f1b", "pipesched (best found)"]
    page.focus(f"{chart} >> nth=1")
    before = page.locator(f"{chart} >> nth=0").screenshot()
    page.keyboard.press("+")
    page.evaluate(TWO_FRAMES)
    assert page.locator(f"{chart} >> nth=0").screenshot() != before  # both show the same part of time
    page.select_option(".choose select >> nth=1", label="none")
    page.wait_for_function("document.querySelectorAll('#schedules .pipesched-canvases').length === 1")
    drawn = page.locator(course).screenshot()
    page.click("#theme")
    page.evaluate(TWO_FRAMES)
    assert page.inner_text("#theme") == "Colours: light" and page.locator(course).screenshot() != drawn
    assert page.get_attribute("#schedules .pipesched-chart", "data-theme") == "light"
    page.click("nav a >> text=How to reproduce")
    assert page.url.endswith("#how-to-reproduce") and complaints == []
    page.close()


def test_no_report_is_wider_than_its_window(browser: Any, solved: Path, planned: Path, swept: Path) -> None:
    """In one page, since Chromium takes a second for each; it complains of nothing, and the picture of a plan is there."""
    page = browser.new_page()
    complaints = complaints_of(page)
    for report_path, width in product((solved, planned, swept), (390, 1440)):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(report_path.as_uri())
        # The charts take the width of their place once that is known, some frames after they are there.
        page.wait_for_selector("#schedules .pipesched-canvases .u-over")
        page.wait_for_function(f"{OVERFLOW} <= 0 && {TIMES} > 0.65")
        if report_path == planned:
            assert page.evaluate("document.querySelector('.picture').naturalWidth") > 100
    assert complaints == []
    page.close()


def test_the_report_of_a_sweep_has_a_row_and_a_schedule_for_each_cell(swept: Path) -> None:
    said, text = report_text(swept), swept.read_text()
    assert (
        "3 cells: 2 optimal, 1 " in said and "The least: makespan 23, at memory.capacity 3, times.transfer 0.5." in said
    )
    assert "\ncell | memory.capacity | times.transfer | " in said and "\n0 | 0.5 | 0.5 | " in said
    assert "Time against memory:" in said
    assert packed_in(text, "schedules") == [
        f"cell {cell}: memory.capacity {cell + 1}, times.transfer 0.5" for cell in (1, 2)
    ]
    assert packed_in(text, "schedule-1")["memory"]["capacity"] == [3, 3]
    assert loaded_by(text) == [] and text.count('src="data:image/svg+xml;base64,') == 4


def test_a_picture_is_there_for_light_and_for_dark_pages() -> None:
    svg = b'<svg><defs>\n</defs><path style="fill: #ffffff"/><path style="stroke: #000000; fill: #f59a23"/><path style="fill: #444444; stroke: #e3e3e3"/><text>a</text></svg>'
    html = Picture(svg, "a picture").html()
    light, night = (base64.b64decode(data) for data in re.findall(r"base64,([^\"]+)", html))
    assert light == svg
    assert (
        b"fill: #15181c" in night and b"stroke: #e8eaed; fill: #f59a23" in night and b"text { fill: #e8eaed }" in night
    )
    assert b"fill: #bbbbbb; stroke: #e3e3e3" in night


def test_short_text_in_tables_stays_on_one_line() -> None:
    long = "a reason of so many words that a line of its own would make the table far too wide"
    found = Table([("layout", True), ("order", False), ("why", False)], [["2", "interleaved-1f1b:11", long]]).html()
    assert "<td class=short>interleaved-1f1b:11</td>" in found and f"<td>{long}</td>" in found
