"""The chart in a real browser: it draws, zooms, moves, tells of passes, follows, lights, and can be used by keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heuristics.catalogue import HEURISTICS
from pipesched.problem.problem import Problem
from pipesched.simulation.simulator import simulate
from plots import html
from plots.html.document import document
from plots.html.page import page as page_of
from tests.support.browser import chromium, complaints_of
from tests.support.makers import problem

TASKS = {
    "forward": [{"name": "attn", "time": 3}, {"name": "dispatch", "on": "comm", "time": 4}],
    "backward": [{"name": "attn", "time": 6}],
}
CHART = ".pipesched-canvases"
PASSES, MEMORY = f"{CHART} .uplot:nth-child(1) .u-over", f"{CHART} .uplot:nth-child(2) .u-over"
# Keeps the chart that the page makes where the test finds it.
CATCH = """
let held;
Object.defineProperty(window, "pipesched", {get: () => held, set: (made) => {
  held = {...made, chart: (...all) => (window.shown = made.chart(...all))};
}});
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


class Shown:
    """A page of one schedule, opened."""

    def __init__(
        self, browser: Any, folder: Path, one: Problem, schedule: str = "1f1b", scheme: str = "light", at: str = ""
    ) -> None:
        file = folder / f"{one.name}.html"
        file.write_text(page_of(simulate(one, HEURISTICS[schedule].order(one)), one.name, schedule), encoding="utf-8")
        self.page = browser.new_page(viewport={"width": 1100, "height": 800}, color_scheme=scheme)
        self.complaints = complaints_of(self.page)
        self.page.add_init_script(CATCH)
        self.page.goto(file.as_uri() + at)
        self.page.wait_for_function("window.shown")
        self.settle()

    def settle(self) -> None:
        """Two frames: what was asked for is drawn."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def view(self) -> tuple[float, float]:
        found = self.page.evaluate("window.shown.view()")
        return found["from"], found["to"]

    def press(self, *keys: str) -> None:
        self.page.focus(CHART)
        for key in keys:
            self.page.keyboard.press(key)
        self.settle()

    def said(self) -> str:
        return str(self.page.inner_text(".pipesched-said"))

    def picture(self) -> bytes:
        self.settle()
        return bytes(self.page.locator(CHART).screenshot())

    def point(self, where: str, x: float, y: float) -> None:
        box = self.page.locator(where).bounding_box()
        self.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


@pytest.fixture(scope="module")
def shown(browser: Any, folder: Path) -> Shown:
    """Of two devices and two micro-batches: F 0-2 and 2-4 on device 0, and so on to 14."""
    memory = {"capacity": 4, "activation": 1.5, "unit": "GiB"}
    one = problem(2, 2, name="plain", times={"forward": 2, "backward": 3}, memory=memory, time_unit="ms")
    return Shown(browser, folder, one, "gpipe")


def test_zoom_and_move_by_wheel_drag_and_keys(shown: Shown) -> None:
    shown.press("0")
    whole = shown.view()
    assert whole[0] == 0 and whole[1] > 0
    shown.point(PASSES, 0.25, 0.5)
    shown.page.mouse.wheel(0, -100)
    shown.settle()
    closer = shown.view()
    assert closer[1] - closer[0] == pytest.approx(0.8 * whole[1])
    assert closer[0] == pytest.approx(0.05 * whole[1], rel=0.05)  # what is under the pointer stays there
    shown.page.mouse.down()
    shown.point(PASSES, 0.15, 0.5)
    shown.page.mouse.up()
    shown.settle()
    assert shown.view()[0] == pytest.approx(closer[0] + 0.08 * whole[1], rel=0.05)
    shown.press("ArrowLeft")
    assert shown.view()[0] < closer[0] + 0.08 * whole[1]
    shown.press("+")
    assert shown.view()[1] - shown.view()[0] == pytest.approx(0.48 * whole[1])
    shown.press("-", "0")
    assert shown.view() == whole
    shown.point(MEMORY, 0.5, 0.5)
    shown.page.mouse.wheel(0, -100)
    shown.settle()
    assert shown.view()[1] - shown.view()[0] < whole[1]
    shown.page.mouse.dblclick(*[300, 250])
    shown.press("0")
    assert shown.complaints == []


def test_the_pointer_tells_of_passes_and_memory(shown: Shown) -> None:
    shown.press("0", "Escape")
    end = shown.view()[1]
    shown.point(PASSES, 1 / end, 0.25)
    tip = shown.page.inner_text(".pipesched-tip").splitlines()
    assert tip[:3] == ["F0.0", "Forward, stage 0, micro-batch 0, device 0", "0 to 2 ms: 2 ms"]
    assert tip[3].endswith("the device holds 1.5 of 4 GiB")
    shown.point(MEMORY, 3 / end, 0.25)
    assert "Device 0 holds 3 of 4 GiB" in shown.page.inner_text(".pipesched-tip")
    shown.point(PASSES, 1 / end, 0.75)
    tip = shown.page.inner_text(".pipesched-tip").splitlines()  # device 1 is idle then
    assert tip[0] == "Device 1 idles 2 ms" and tip[1] == "from 0 to 2 ms, before F1.0"
    assert tip[2] == "which waits for F0.0 of device 0, which ends then"


def test_an_interval_is_summed_up_over_the_devices(shown: Shown) -> None:
    shown.press("0", "Escape")
    before, end = shown.picture(), shown.view()[1]
    shown.page.keyboard.down("Shift")
    shown.point(PASSES, 0, 0.25)
    shown.page.mouse.down()
    shown.point(PASSES, 2 / end, 0.25)
    shown.page.mouse.up()
    shown.page.keyboard.up("Shift")
    said = shown.said()
    # Device 0 runs a forward all the time, device 1 waits for it.
    assert "mean over devices: forward 50.0 %, idle 50.0 %" in said and "device 1 idles most" in said
    assert shown.picture() != before
    shown.press("Escape")
    assert shown.said() == ""


def test_a_click_follows_a_microbatch_and_escape_clears(shown: Shown) -> None:
    shown.press("0", "Escape")
    before, end = shown.picture(), shown.view()[1]
    shown.point(PASSES, 3 / end, 0.25)
    shown.page.mouse.down()
    shown.page.mouse.up()
    assert shown.page.input_value(".pipesched-controls input[type=number]") == "1"
    assert shown.said().startswith("F0.1 · Forward, stage 0, micro-batch 1, device 0 · 2 to 4 ms")
    shown.page.mouse.move(0, 0)
    followed = shown.picture()
    assert followed != before
    shown.page.fill(".pipesched-controls input[type=number]", "0")
    assert shown.picture() != followed
    shown.press("Escape")
    assert shown.page.input_value(".pipesched-controls input[type=number]") == "" and shown.said() == ""


def test_passes_are_walked_through_by_keys(shown: Shown) -> None:
    shown.press("0", "Escape", "n")
    assert shown.said().startswith("F0.0 ")
    shown.press("n", "n")
    assert shown.said().startswith("BW0.") and "on the critical path" in shown.said()
    shown.press("p")
    assert shown.said().startswith("F0.1 ")
    shown.press("ArrowDown")
    assert shown.said().startswith("F1.0 ")
    shown.press("Enter")
    assert shown.page.input_value(".pipesched-controls input[type=number]") == "0"
    shown.press("+", "+", "+", "+", "+")
    shown.press("n", "n", "n")
    begin, end = shown.view()
    assert (
        shown.said().startswith("BW1.")
        and end <= shown.page.evaluate("(shown.show(0, 1e9), shown.view().to)")
        and begin > 0
    )


def test_the_critical_path_is_lit(shown: Shown) -> None:
    shown.press("0", "Escape")
    before = shown.picture()
    shown.press("c")
    assert shown.page.is_checked("text=Critical path") and shown.picture() != before
    shown.press("c")
    assert shown.picture() == before


def test_what_it_says_to_those_who_do_not_see_it(shown: Shown) -> None:
    label = shown.page.get_attribute(CHART, "aria-label")
    assert "8 boxes on 2 devices, 2 micro-batches" in label and "Peak memory in GiB: device 0 3, device 1 3" in label
    described = shown.page.get_attribute(CHART, "aria-describedby")
    assert "Enter follows" in shown.page.text_content(f"#{described}")
    assert shown.page.get_attribute(".pipesched-said", "aria-live") == "polite"
    shown.page.click("summary >> text=table")
    shown.page.wait_for_selector("tbody tr")  # it is filled once it is open
    assert shown.page.locator("tbody tr").count() == 4
    shown.page.select_option("details select", "1")
    assert shown.page.inner_text("tbody tr:first-child").replace("\t", " ") == "F1.0 Forward 0 2 4 holds 1.5 of 4 GiB"
    shown.page.click("summary >> text=table")


def test_another_document_goes_on_showing_what_was_shown(shown: Shown, folder: Path) -> None:
    other = problem(3, 4, name="other", times={"forward": 2, "backward": 3})
    shown.press("0", "+")
    before = shown.view()
    shown.page.evaluate("(next) => shown.update(next)", document(simulate(other, HEURISTICS["1f1b"].order(other))))
    shown.settle()
    assert shown.view() == before
    assert "on 3 devices, 4 micro-batches" in shown.page.get_attribute(CHART, "aria-label")
    shown.press("0")
    assert shown.view()[1] == 30
    shown.page.evaluate("shown.destroy()")
    assert shown.page.locator(".pipesched-chart").count() == 0 and shown.complaints == []


def test_streams_are_hidden_and_shown_in_the_dark(browser: Any, folder: Path) -> None:
    one = problem(2, 2, name="streams", streams=["compute", "comm"], tasks=TASKS, times={})
    dark = Shown(browser, folder, one, scheme="dark", at="#3-9")
    assert dark.view() == (3, 9)
    assert dark.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    assert dark.page.get_attribute(".pipesched-chart", "data-theme") == "dark"
    both, high = dark.picture(), dark.page.locator(PASSES).bounding_box()["height"]
    dark.press("s")
    assert dark.page.locator(PASSES).bounding_box()["height"] < high and not dark.page.is_checked("text=Other streams")
    dark.page.evaluate("shown.showStreams(true)")
    dark.settle()
    assert dark.page.locator(PASSES).bounding_box()["height"] == high
    dark.page.evaluate("shown.theme('light')")
    assert dark.picture() != both
    dark.page.emulate_media(color_scheme="light")
    dark.page.evaluate("shown.theme('auto')")
    assert dark.page.get_attribute(".pipesched-chart", "data-theme") == "light"
    assert dark.complaints == []
    dark.page.close()


def test_charts_of_a_group_share_what_they_show(browser: Any, folder: Path) -> None:
    one = problem(2, 2, name="pair")
    pair = Shown(browser, folder, one)
    end = pair.view()[1]
    pair.page.evaluate(
        """async () => {
          const data = await unpacked("chart"), at = document.getElementById("chart");
          window.one = pipesched.chart(at, data, {group: "a"});
          window.other = pipesched.chart(at, {...data, end: 2 * data.end}, {group: "a", controls: false});
        }"""
    )
    assert pair.page.evaluate("[one.view().to, other.view().to]") == [2 * end, 2 * end]
    pair.page.evaluate("other.show(1, 3)")
    assert pair.page.evaluate("[one.view(), other.view()]") == [{"from": 1, "to": 3}] * 2
    assert pair.page.locator(".pipesched-controls").count() == 2  # the page's own chart and one of the two
    assert pair.complaints == []
    pair.page.close()


PEAKS = [
    ("1609728", "1609728", "1609728 of 1609728"),
    ("1609727", "1609728", "1609727 of 1609728"),
    ("1354752.7", "1609728", "1354752 of 1609728"),
    ("1609729", "1609728", "1609729 of 1609728"),
    ("1609728.2", "1609728", "1609729 of 1609728"),
    ("0.3", "0.3", "0.3 of 0.3"),
    ("0.29", "1", "0.29 of 1"),
    ("1.0000001", "1", "1.00001 of 1"),
    ("1609729", "null", "1609729"),
]


def test_a_peak_looks_above_its_capacity_only_where_it_is(browser: Any) -> None:
    words = (Path(html.__file__).parent / "chart" / "words.js").read_text(encoding="utf-8")
    page = browser.new_page()
    asked = ", ".join(f"peakOf({peak}, {capacity})" for peak, capacity, _ in PEAKS)
    assert page.evaluate(f"(() => {{ {words}; return [{asked}]; }})()") == [text for *_, text in PEAKS]
    page.close()


def test_what_takes_no_time_is_a_line_in_its_colour(browser: Any, folder: Path) -> None:
    # F0.0 runs from 0 to 2, F1.0 on the other device from 2 to 4, BW1.0 at 4 without time, BW0.0 from 4 to 7.
    one = problem(2, 1, name="instants", times={"forward": 2, "backward": [3, 0]})
    at = Shown(browser, folder, one, "gpipe")
    end = at.view()[1]
    assert end == 7
    colours = at.page.evaluate(
        """() => {
          const canvas = document.querySelector(".pipesched-canvases canvas"), found = new Set();
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          for (let y = canvas.height >> 1; y < canvas.height; y++) for (let x = 0; x < canvas.width; x++) {
            const n = 4 * (y * canvas.width + x);
            found.add("#" + [...pixels.slice(n, n + 3)].map((c) => c.toString(16).padStart(2, "0")).join(""));
          }
          return [...found];
        }"""
    )
    styles = document(simulate(one, HEURISTICS["gpipe"].order(one)))["styles"]
    assert {style["colour"] for style in styles if style["pass"] == "BW1"} <= set(colours)
    at.point(PASSES, 4 / end, 0.75)
    assert at.page.inner_text(".pipesched-tip").splitlines()[:3:2] == ["BW1.0", "4 to 4: 0"]
    at.point(PASSES, 4.1 / end, 0.75)
    assert at.page.inner_text(".pipesched-tip").startswith("Device 1 has ended")
    at.point(PASSES, 3.9 / end, 0.75)
    assert at.page.inner_text(".pipesched-tip").startswith("F1.0")
    assert at.complaints == []
    at.page.close()
