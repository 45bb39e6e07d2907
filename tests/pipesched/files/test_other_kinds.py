"""Files know what they are: one of another kind is refused in one line that names the command that reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.files.schedule_file import ScheduleFile, schedule_document
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem, schedule

PROBLEM = {"devices": 1, "microbatches": 1, "times": {"forward": 1, "backward": 1}, "memory": {"activation": 2}}
PLAN = {"devices": 1, "microbatches": 1, "layers": [{"name": "a", "forward": 1, "backward": 1}], "partition": "even"}
SCHEDULE = schedule_document(ScheduleFile(simulate(problem(1, 1), schedule("F0.0 BW0.0"))))
ANSWER = {"format": "pipesched-plan", "format_version": 1}


@pytest.mark.parametrize(
    ("command", "document", "names"),
    [
        ("solve", PLAN, "`pipesched plan`"),
        ("solve", {"devices": 2, "model": {"layers": 4}}, "`pipesched plan`"),
        ("solve", SCHEDULE, "validate, export and plot"),
        ("solve", ANSWER, "`pipesched check`"),
        ("plan", PROBLEM, "`pipesched solve`"),
        ("plan", SCHEDULE, "validate, export and plot"),
        ("plan", ANSWER, "`pipesched check`"),
        ("validate", PROBLEM, "`pipesched solve`"),
        ("validate", PLAN, "`pipesched plan`"),
        ("plot", ANSWER, "`pipesched check`"),
        ("layouts --gpus 2 --microbatches 2 --hardware h100-80gb", PROBLEM, "`pipesched solve`"),
        ("layouts --gpus 2 --microbatches 2 --hardware h100-80gb", PLAN, "`pipesched plan`"),
        ("layouts --gpus 2 --microbatches 2 --hardware h100-80gb", SCHEDULE, "validate, export and plot"),
    ],
)
def test_another_kind_is_one_line(command: str, document: Any, names: str, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "file.json"
    path.write_text(json.dumps(document, default=str))
    assert main([*command.split(), str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{path}: found " in line and names in line


def test_mistakes_of_a_file_of_no_sure_kind_are_those_of_its_keys(tmp_path: Path, capsys: Any) -> None:
    for document in (PROBLEM | {"layers": PLAN["layers"]}, {"devices": 1}, {"format": "other", **PROBLEM}):
        path = tmp_path / "file.json"
        path.write_text(json.dumps(document))
        assert main(["solve", str(path)]) == 2
        assert "found a" not in capsys.readouterr().err


def test_perfetto_is_the_format_that_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(SCHEDULE, default=str))
    for name in ("chrome-trace", "perfetto"):
        assert main(["export", str(path), "--format", name, "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / "perfetto").read_text() == (tmp_path / "chrome-trace").read_text()
