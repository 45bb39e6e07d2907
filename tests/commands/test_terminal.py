"""What a terminal shows and a pipe does not: colours, bars, the schedule drawn with characters."""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from commands.main import main
from commands.shared.console import redraws

START = str(Path(__file__).resolve().parents[2] / "examples" / "start.yaml")
ESCAPE = "\x1b["
COMPARE = ["compare", START, "--no-optimal", "--schedules", "1f1b,zb-h1,gpipe"]
SIMULATE = ["simulate", START, "--schedule", "zb-h1"]
ROW = re.compile(r"^device 0 .*F", re.MULTILINE)


class Terminal(io.TextIOWrapper):
    """Standard output as a terminal of some width."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(io.BytesIO(), encoding="utf-8", write_through=True)


def said(terminal: Terminal, command: list[str]) -> str:
    terminal.truncate(0)
    terminal.seek(0)
    with redirect_stdout(terminal):
        assert main(command) == 0
    terminal.seek(0)
    return terminal.read()


@pytest.mark.parametrize("command", [COMPARE, SIMULATE])
def test_a_terminal_gets_colours(command: list[str], terminal: Terminal) -> None:
    assert ESCAPE in said(terminal, command)


@pytest.mark.parametrize("command", [COMPARE, SIMULATE])
@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_no_escape_code(
    name: str, value: str, command: list[str], terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    text = said(terminal, command)
    assert ESCAPE not in text
    assert "█" in text or ROW.search(text), "the bars and the chart need no colour"


@pytest.mark.parametrize("command", [COMPARE, SIMULATE])
def test_a_pipe_gets_neither_colour_nor_bar_nor_chart(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command) == 0
    text = capsys.readouterr().out
    assert ESCAPE not in text
    assert "█" not in text
    assert not ROW.search(text)


def test_a_pipe_gets_what_it_asks_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMPARE, "--bars"]) == 0
    text = capsys.readouterr().out
    bars = {line.split()[1]: re.findall("[█░▓]+", line)[0] for line in text.splitlines() if line.startswith("│ ")}
    assert len(bars["1f1b"]) > len(bars["zb-h1"]), "the slower one has the longer bar"
    assert bars["1f1b"].startswith(bars["zb-h1"]), "what is above the bound comes last"
    assert "▓" not in bars["zb-h1"]
    assert main([*SIMULATE, "--text"]) == 0
    text = capsys.readouterr().out
    assert ROW.search(text)
    assert max(map(len, text.splitlines())) <= 80
    assert ESCAPE not in text


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(START).parents[1] / "docs" / "terminal.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- chart:.*?```\n(.*?)```", page, re.DOTALL)
    assert shown
    assert main([*SIMULATE, "--text"]) == 0
    assert capsys.readouterr().out.endswith(shown[1])


def test_a_terminal_may_be_asked_for_less(terminal: Terminal) -> None:
    text = said(terminal, [*COMPARE, "--no-bars"])
    assert "█" not in text
    text = said(terminal, [*SIMULATE, "--no-text"])
    assert not ROW.search(text)


def test_many_devices_are_drawn_only_when_asked_for(tmp_path: Path, terminal: Terminal) -> None:
    many = tmp_path / "many.yaml"
    many.write_text("devices: 17\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n")
    assert not ROW.search(said(terminal, ["simulate", str(many)]))
    assert "device 16 " in said(terminal, ["simulate", str(many), "--text"])


def test_plot_draws_with_characters_and_writes_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schedule = str(tmp_path / "one.json")
    assert main([*SIMULATE, "-o", schedule]) == 0
    capsys.readouterr()
    assert main(["plot", schedule, "--text", "--zoom", "100:200"]) == 0
    text = capsys.readouterr().out
    assert ROW.search(text)
    assert "|100" in text
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]
    assert main(["plot", schedule, "--text", "--kind", "memory"]) == 2
    assert main(["plot", schedule, "--text", "--json"]) == 2
    assert main([*SIMULATE, "--text", "--json"]) == 2


def test_json_is_one_object_on_a_terminal_too(terminal: Terminal) -> None:
    assert json.loads(said(terminal, [*SIMULATE, "--json"]))["schedule"] == "zb-h1"


def test_progress_is_a_line_each_where_a_terminal_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(io.BytesIO()))
    monkeypatch.setenv("TERM", "xterm")
    assert redraws()
    monkeypatch.setenv("TERM", "dumb")
    assert not redraws()
