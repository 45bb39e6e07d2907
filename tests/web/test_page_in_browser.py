"""The page in a real browser: type, solve, stop, compare, download, bad input, two tabs, reload, links."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import OVERFLOW, chromium

ROOT = Path(__file__).resolve().parents[2]
START = (ROOT / "examples" / "start.yaml").read_text(encoding="utf-8")
# No optimum is proved within seconds.
HARD = (
    "devices: 6\nmicrobatches: 20\nplacement: interleaved\nchunks: 2\nmemory: {capacity: 10}\n"
    "times: {forward: [99, 147, 103, 55, 83, 115, 112, 101, 150, 88, 111, 95], transfer: 17,\n"
    "  backward: [124, 77, 114, 67, 86, 67, 146, 62, 129, 82, 118, 140],\n"
    "  weight: [38, 59, 32, 29, 62, 80, 32, 65, 75, 60, 46, 90]}\n"
)
WINDOW = {"width": 1280, "height": 900}
LONG, PAUSE = 60_000, 100  # milliseconds; a shared machine is slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server started as a user starts it, in a folder whose modules are named like ours."""
    folder = tmp_path_factory.mktemp("theirs")
    for name in ("web", "solver"):
        (folder / f"{name}.py").write_text("raise RuntimeError('a module of the user')\n")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pipesched", "serve", "--port", "0", "--json", "--solves", "2", "--workers", "1"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        said = "".join(iter(process.stdout.readline, "}\n")) + "}"
        yield json.loads(said)["url"]
        process.terminate()


@pytest.fixture(scope="module")
def browser(url: str) -> Iterator[Any]:
    with chromium() as found:
        yield found


class Tab:
    """A tab of the page, with what its console complained of and what it asked of other hosts."""

    def __init__(self, browser: Any, url: str, context: Any = None, **options: Any) -> None:
        self.url = url
        self.context = context or browser.new_context(viewport=WINDOW, **options)
        self.page = self.context.new_page()
        self.page.set_default_timeout(LONG)
        self.wrong: list[str] = []
        self.page.on(
            "console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on(
            "request", lambda asked: None if asked.url.startswith((url, "blob:")) else self.wrong.append(asked.url)
        )
        self.open()

    def open(self) -> None:
        self.page.goto(self.url)
        self.wait_for_schedules("zb-h1")

    def open_again(self) -> None:
        """As if it were new, which would take Chromium a second: it keeps nothing that the page has stored."""
        self.page.evaluate("sessionStorage.clear(); localStorage.clear()")
        self.page.set_viewport_size(WINDOW)
        self.wrong.clear()
        self.open()

    def wait_for_schedules(self, name: str) -> None:
        """Until the table is of the text as it is now, and has this schedule."""
        self.page.wait_for_selector(f"#table:not(.stale) tbody th:has-text('{name}')")

    def type_text(self, text: str, name: str = "1f1b") -> None:
        self.page.click("#tab-yaml")
        self.page.fill("#yaml", text)
        self.wait_for_schedules(name)

    def text(self, selector: str) -> str:
        return str(self.page.inner_text(selector))

    def value(self, selector: str) -> str:
        return str(self.page.input_value(selector))

    def wait_until(self, condition: str) -> None:
        """Asked again and again from here: the page's policy forbids what playwright would put into it."""
        for _ in range(LONG // PAUSE):
            if self.page.evaluate(condition):
                return
            self.page.wait_for_timeout(PAUSE)
        raise AssertionError(condition)

    def says(self, selector: str, pattern: str) -> None:
        self.wait_until(f"/{pattern}/.test(document.querySelector('{selector}').textContent)")


@pytest.fixture(scope="module")
def tab_of_all(browser: Any, url: str) -> Tab:
    return Tab(browser, url)


@pytest.fixture
def tab(tab_of_all: Tab) -> Iterator[Tab]:
    """One tab after another, as far as the page can tell."""
    tab_of_all.open_again()
    yield tab_of_all
    assert tab_of_all.wrong == []


def test_nothing_is_solved_before_the_scripts_have_loaded(browser: Any, url: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(url)
    assert page.is_disabled("#begin")
    context.close()


def test_form_and_text_are_kept_in_step(tab: Tab) -> None:
    assert tab.value("#yaml") == START and tab.value("#field-times-forward") == "10"
    tab.page.fill("#field-microbatches", "6")
    tab.wait_until("document.querySelector('#yaml').value.includes('microbatches: 6')")
    assert tab.value("#yaml") == START.replace("microbatches: 8", "microbatches: 6")
    tab.wait_for_schedules("1f1b")
    tab.type_text(START.replace("forward: 10", "forward: 12"))
    tab.page.click("#tab-form")
    assert tab.value("#field-times-forward") == "12" and tab.value("#field-microbatches") == "8"


def test_bad_input_is_shown_where_it_is(tab: Tab) -> None:
    tab.page.fill("#field-devices", "<b>two</b>")
    tab.says("#mistakes", r"devices: found '<b>two<.b>'; allowed: a whole number")
    assert tab.page.get_attribute("#field-devices", "aria-invalid") == "true"
    assert "allowed" in tab.text("#field-devices-wrong")
    assert tab.page.is_disabled("#begin") and not tab.page.query_selector("#mistakes b")
    tab.page.click("#tab-yaml")
    tab.page.fill("#yaml", "devices: 2\ntimes: [\n")
    tab.says("#mistakes", "line 3, column 1")
    tab.page.click("#mistakes button")
    assert tab.page.evaluate("document.activeElement.id") == "yaml"
    tab.type_text(START)
    assert tab.text("#mistakes") == "" and tab.page.is_enabled("#begin")


def test_charts_of_another_problem_are_pale_until_it_is_right(tab: Tab) -> None:
    pale = "getComputedStyle(document.querySelector('#pane-0 .chart')).opacity"
    tab.page.click("#tab-yaml")
    tab.wait_for_schedules("1f1b")
    tab.page.fill("#yaml", "devices: 0\n")
    tab.says("#outdated", "The charts are of the last problem without mistakes.")
    assert tab.page.evaluate(pale) == "0.55"
    tab.page.fill("#yaml", START)
    tab.wait_until(f"{pale} === '1'")
    assert tab.text("#outdated") == ""


def test_a_file_is_opened(tab: Tab, tmp_path: Path) -> None:
    own, long = tmp_path / "own.yaml", tmp_path / "long.yaml"
    own.write_text(START.replace("microbatches: 8", "microbatches: 7"))
    long.write_bytes(b"#" * 3_000_000)
    with tab.page.expect_file_chooser() as chooser:
        tab.page.click("#open")
    chooser.value.set_files(own)
    tab.wait_until("document.querySelector('#yaml').value.includes('microbatches: 7')")
    tab.page.set_input_files("#file", long)
    tab.says("#said", "long.yaml: found 3000000 bytes; allowed: up to")
    assert tab.value("#yaml") == own.read_text()


def test_solve_compare_and_download(tab: Tab, tmp_path: Path) -> None:
    tab.page.click("#begin")
    tab.says("#verdict", "Optimal: makespan 279 ms; no schedule is better")
    assert tab.text("#gap") == "0.00 %" and "279 ms" in tab.text("#bound")
    assert tab.value("#pane-0 .which") == "pipesched" and tab.value("#pane-1 .which").startswith("zb")
    tab.page.click("[aria-label='Compare with 1f1b']")
    assert tab.value("#pane-1 .which") == "1f1b" and "makespan 327 ms" in tab.text("#pane-1 .facts")
    tab.page.wait_for_selector("#pane-1 canvas")
    for name in ("schedule.json", "gantt.png", "chrome-trace"):
        tab.page.select_option("#pane-0 .format", name)
        with tab.page.expect_download() as waited:
            tab.page.click("#pane-0 .get")
        path = tmp_path / waited.value.suggested_filename
        waited.value.save_as(path)
        assert path.stat().st_size > 500
    assert json.loads((tmp_path / "schedule.json").read_text())["format"] == "pipesched-schedule"


def test_solving_for_a_runtime_and_transfers_by_node(tab: Tab) -> None:
    tab.page.fill("#field-times-transfer-intra_node", "1")
    tab.says("#field-times-transfer-nodes-wrong", "node of each device")
    tab.page.fill("#field-times-transfer-inter_node", "5")
    tab.page.fill("#field-times-transfer-nodes", "0, 0, 1, 1")
    tab.wait_until("document.querySelector('#yaml').value.includes('nodes: [0, 0, 1, 1]')")
    tab.wait_for_schedules("1f1b")
    assert tab.value("#field-times-transfer") == "" and "deepspeed" in tab.text("#target")
    tab.page.select_option("#target", "deepspeed")
    tab.page.click("#begin")
    tab.says("#verdict", "that deepspeed can express")
    tab.page.reload()
    tab.wait_for_schedules("1f1b")
    assert tab.value("#target") == "deepspeed", "the choice is kept"
    tab.page.click("#tab-yaml")
    tab.page.fill("#yaml", "devices: 2\nmicrobatches: 4\nlayers: [{name: layer, count: 4, forward: 1, backward: 2}]\n")
    tab.wait_until("document.querySelector('#target').textContent.includes('megatron')")
    tab.wait_until("!document.querySelector('#begin').disabled")
    tab.page.select_option("#target", "megatron")
    tab.page.fill("#seconds", "3")
    tab.page.click("#begin")
    tab.says("#verdict", "that megatron can express")


def test_stop_reload_and_two_tabs_at_once(tab: Tab, browser: Any, url: str) -> None:
    tab.type_text(HARD, "zb")
    tab.page.click("#begin")
    tab.wait_until("document.querySelector('#pane-0 .which').value === 'pipesched'")
    other = Tab(browser, url, tab.context)
    assert other.value("#yaml") == START, "a new tab has a problem of its own"
    other.page.click("#begin")
    other.says("#verdict", "Optimal")
    assert tab.page.is_enabled("#stop"), "the first tab's solve goes on"
    tab.page.reload()
    tab.wait_for_schedules("zb")
    assert tab.value("#yaml") == HARD
    tab.wait_until("document.querySelector('#pane-0 .which').value === 'pipesched'")
    tab.page.click("#stop")
    tab.says("#verdict", "Best found: .* It was stopped")
    gap = float(re.sub(r"[^\d.]", "", tab.text("#gap")))
    assert 0 < gap < 100 and tab.page.is_enabled("#begin") and other.wrong == []
    assert tab.text("#phase") == "stopped" and other.text("#phase") == "ended"
    assert tab.page.is_visible("#history canvas") and "lower bound at" in tab.text("#history-text")
    other.page.close()


def test_a_link_holds_the_problem(tab: Tab, browser: Any, url: str) -> None:
    asked: list[str] = []
    text = START + "# é 漢字\n"
    tab.type_text(text)
    tab.page.click("#share")
    tab.wait_until("location.hash.startsWith('#p=')")
    link = tab.page.url
    other = Tab(browser, link)
    other.page.on("request", lambda request: asked.append(request.url))
    assert other.value("#yaml") == text and not any("p=" in one for one in asked)
    other.page.goto(link[:-20] + "_" * 20)
    other.says("#said", "damaged")
    other.context.close()


def test_dark_keyboard_and_names(tab: Tab) -> None:
    tab.page.emulate_media(color_scheme="dark")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 15, 18)"
    tab.page.select_option("#theme", "light")
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(243, 245, 248)"
    tab.page.focus("#tab-form")
    tab.page.keyboard.press("ArrowRight")
    assert tab.page.evaluate("document.activeElement.id") == "tab-yaml" and tab.page.is_visible("#yaml")
    unnamed = "[...document.querySelectorAll('button, select, input, textarea')].filter((e) => !e.labels?.length && !e.ariaLabel && !e.textContent.trim())"
    assert tab.page.evaluate(f"{unnamed}.map((e) => e.outerHTML)") == []
    tab.page.emulate_media(color_scheme="light")


def test_the_page_is_no_wider_than_its_window(tab: Tab) -> None:
    for width in (390, 1440):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.page.wait_for_selector("#charts .pipesched-canvases")
        assert tab.page.evaluate(OVERFLOW) <= 0


def test_a_phone_sees_solve_first(browser: Any, url: str) -> None:
    """Without scrolling, and in front of the form; a wide window has both beside each other."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    tab = Tab(browser, url, context)
    bottom = "document.querySelector('#begin').getBoundingClientRect().bottom"
    assert tab.page.evaluate(bottom) < 844
    tops = [
        tab.page.evaluate(f"document.querySelector('{one}').getBoundingClientRect().top")
        for one in ("#best", "#problem", "#charts")
    ]
    assert tops == sorted(tops) and len({*tops}) == 3
    context.close()


def test_a_configuration_on_the_page_names_layouts(tab: Tab) -> None:
    tab.page.click("#tab-yaml")
    tab.page.fill("#yaml", '{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32}')
    tab.says("#mistakes", "found a model's configuration .`pipesched layouts` and `pipesched new --from` read it")
