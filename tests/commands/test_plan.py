"""The command `plan`: its files, its JSON, its exit codes."""

import json

import pytest

from commands.main import main
from pipesched.files.problem_file import read_problem
from pipesched.files.schedule_file import read_schedule
from pipesched.validation.validator import validate

FILE = """
devices: 2
microbatches: 2
time_unit: ms
layers:
  - {name: embedding, forward: 1, backward: 1, memory: 2, activation: 1}
  - {name: layer, count: 2, forward: 2, backward: 3, memory: 1, activation: 1, recompute: [{name: full, time: 2, keeps: 0}]}
  - {name: head, forward: 1, backward: 2, memory: 2, with_previous: true}
placement: linear
memory: {capacity: 7, unit: GiB}
transfer: 0.5
"""
KEYS = {
    "name", "objective", "status", "value", "lower_bound", "gap", "placement", "chunks", "partition", "stage_device",
    "recompute", "schedule", "bubble", "peak_memory", "choices", "certificate", "settings", "wall_seconds",
}  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(FILE)
    return path


def test_files_and_json_agree(file, tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["plan", str(file), "--json", "--time-limit", "8", "--workers", "1", "-o", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() >= KEYS
    assert found["status"] == "optimal"
    assert sum(found["partition"]) == 4
    assert sum(found["time"].values()) == pytest.approx(found["value"])
    assert all(peak <= 7 for peak in found["peak_memory"])
    timeline = read_schedule(folder / "schedule.json").timeline
    assert validate(timeline) == []
    assert read_problem(folder / "problem.yaml").content_key == timeline.problem.content_key
    assert {path.name for path in folder.iterdir()} >= {"plan.png", "gantt.png", "memory.png", "report.html"}


def test_exit_codes(file, tmp_path, capsys):
    file.write_text(FILE.replace("capacity: 7", "capacity: 2"))
    assert main(["plan", str(file), "--time-limit", "5", "--workers", "1"]) == 1
    file.write_text(FILE.replace("devices: 2", "devices: two"))
    assert main(["plan", str(file)]) == 2
    assert "devices" in capsys.readouterr().err
