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
