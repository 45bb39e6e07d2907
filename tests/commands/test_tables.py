"""Tables in narrow terminals, and terminals whose encoding lacks what tables say."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from commands.main import main
from commands.shared.tables import Column

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
