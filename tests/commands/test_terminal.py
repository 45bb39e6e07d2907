"""What a terminal shows and a pipe does not: colours, bars, charts; tables in narrow ones, other encodings."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from commands.main import main
from commands.shared.console import redraws
from commands.shared.tables import Column

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


def test_json_is_one_object_on_a_terminal_too(terminal: Terminal) -> None:
    assert json.loads(said(terminal, [*SIMULATE, "--json"]))["schedule"] == "zb-h1"


def test_progress_is_a_line_each_where_a_terminal_cannot_redraw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal(io.BytesIO()))
    monkeypatch.setenv("TERM", "xterm")
    assert redraws()
    monkeypatch.setenv("TERM", "dumb")
    assert not redraws()


EXAMPLE = str(Path(__file__).resolve().parents[2] / "examples" / "gpt-1.5b-pp8.yaml")
COLUMNS = [Column("name"), Column("value", True), Column("less", True, 1), Column("least", True, 2)]


@pytest.mark.parametrize("room", [60, 80, 100, 120])
@pytest.mark.parametrize(
    "command",
    [
        ["compare", EXAMPLE, "--no-optimal"],
        ["simulate", EXAMPLE, "--noise", "5%", "--samples", "2"],
        ["schedules"],
    ],
)
def test_tables_fit_the_width_and_say_what_is_left_out(
    command: list[str], room: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(room))
    assert main(command) == 0
    said = capsys.readouterr().out
    rows = [line for line in said.splitlines() if line[:1] in ("│", "┃", "┏", "└")]
    assert max(map(len, rows)) <= room
    assert "…" not in "".join(rows), "a cell was cut short"
    if room == 60:
        assert "left out in 60 columns: " in said


@pytest.mark.parametrize("command", [["compare", EXAMPLE, "--no-optimal"], ["schedules"], ["simulate", EXAMPLE]])
def test_tables_in_a_pipe_of_unknown_width_take_120_columns(
    command: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(command) == 0
    said = capsys.readouterr().out
    assert max(len(line) for line in said.splitlines() if line[:1] in ("│", "┃", "┏", "└")) <= 120
    assert ("left out in 120 columns: " in said) == ("COLUMNS=250" in said)


def test_what_does_not_fit_says_so_under_noise(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["compare", EXAMPLE, "--no-optimal", "--schedules", "gpipe,zb-h1", "--noise", "5%"]) == 0
    noisy = capsys.readouterr().out.split("under noise")[1]
    assert "gpipe (does not fit)" in noisy and "zb-h1 (does not fit)" not in noisy


@pytest.mark.parametrize("encoding", ["ascii", "cp932", "latin-1"])
def test_what_an_encoding_lacks_is_written_otherwise(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    held = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(held, encoding=encoding, write_through=True))
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["simulate", EXAMPLE, "--noise", "5%", "--samples", "2"]) == 0
    said = held.getvalue().decode(encoding)
    assert "201216 - 1609728" in said, "the dash of a range"
    rows = [line for line in said.splitlines() if line.startswith(("|", "+"))]
    assert len({len(row) for row in rows[:5]}) == 1, "measured as it is written"


def test_a_whole_run_in_a_narrow_encoding_ends_well() -> None:
    environment = os.environ | {"PYTHONIOENCODING": "cp932", "PYTHONPATH": str(Path(EXAMPLE).parents[1])}
    command = [sys.executable, "-m", "commands.main", "schedules"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0
    assert b"UnicodeEncodeError" not in done.stderr
