"""File names whose bytes are no UTF-8, as older systems have them: what a command writes of such a file can be read."""

import json
import os
from pathlib import Path

import pytest

from commands.main import main


def test_a_file_of_such_a_name_is_solved_swept_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / os.fsdecode(b"b\xffd.yaml")
    path.write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n")
    limits = ["--workers", "1", "--seed", "1"]
    schedule = tmp_path / "one.json"
    assert main(["simulate", str(path), "-o", str(schedule)]) == 0
    assert json.loads(schedule.read_text())["problem"]["name"] == "b?d"
    assert main(["check", str(schedule)]) == 0
    swept = ["sweep", str(path), "--set", "microbatches=1,2", "--jobs", "1", "--total-time", "2"]
    assert main([*swept, "-o", str(tmp_path / "swept"), *limits]) == 0
    assert main(["check", str(tmp_path / "swept")]) == 0
    assert "DEFECT" not in capsys.readouterr().err


def test_files_of_such_a_name_are_written_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n")
    order = tmp_path / os.fsdecode(b"x\xff.json")
    assert main(["simulate", str(tmp_path / "p.yaml"), "-o", str(order)]) == 0
    assert "x?.json" in capsys.readouterr().out
    words = ["compare", str(tmp_path / "p.yaml"), "--with", str(order), "--no-optimal", "--json"]
    assert main(words) == 0
    assert "udcff" not in capsys.readouterr().out
