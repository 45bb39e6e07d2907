"""The command `plan`: its files, its JSON, its exit codes."""

import json
from pathlib import Path

import pytest

from commands.main import main
from pipesched.files.problem_file import read_problem
from pipesched.files.schedule_file import read_schedule
from pipesched.validation.validator import validate
from tests.support.nameless import nameless

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
    "recompute", "schedule", "bubble", "idle", "peak_memory", "choices", "certificate", "settings", "wall_seconds",
}  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(FILE)
    return path


def test_a_plan_of_forwards_alone_says_nothing_of_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    source = str(Path(__file__).resolve().parents[2] / "examples" / "plans" / "serving.yaml")
    assert main(["plan", source, "--for", "vllm", "--time-limit", "10", "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "makespan: of forwards alone\n" in said
    assert "gradient" not in said and "optimizer" not in said
    assert "vllm can express and run all plans of this file\n" in said


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
    assert nameless(read_problem(folder / "problem.yaml")) == nameless(timeline.problem)
    assert {path.name for path in folder.iterdir()} >= {"plan.png", "gantt.png", "memory.png", "report.html"}


def test_where_no_plan_fits_the_exit_code_is_1(file):
    file.write_text(FILE.replace("capacity: 7", "capacity: 2"))
    assert main(["plan", str(file), "--time-limit", "5", "--workers", "1"]) == 1


@pytest.mark.usefixtures("pictures_are_empty")
def test_a_plan_for_a_runtime_can_be_told_to_it_and_is_shown_beside_the_best_of_all(file, tmp_path, capsys):
    folder = tmp_path / "out"
    words = ["plan", str(file), "--for", "megatron", "--json", "--time-limit", "8", "--workers", "1", "-o", str(folder)]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["for"] == "megatron"
    assert (found["schedule"], found["status"]) == ("1f1b", "optimal")
    assert found["free"]["value"] <= found["value"]
    assert found["settings"]["megatron-layout"]["text"].endswith("L")
    assert found["settings"]["megatron-layout"]["value"] == found["value"]
    assert "order 1f1b or interleaved-1f1b" in found["restricted_to"]
    assert (folder / "partition.megatron.args").is_file()
    assert main(["check", str(folder / "plan.json")]) == 0
    assert "no plan is below" in capsys.readouterr().out
    assert "For megatron" in (folder / "report.html").read_text()


@pytest.mark.usefixtures("pictures_are_empty")
def test_what_any_order_inside_megatron_gains_over_its_flags_is_planned(file, tmp_path, capsys):
    """Of the same plans it may choose any order, with split backwards; its schedule is what the module is made of."""
    file.write_text(FILE.replace("backward: 3", "backward: 2, weight: 2").replace("capacity: 7", "capacity: 20"))
    values = {}
    for target, setting in (("megatron", "megatron-layout"), ("megatron-order", "megatron-order-layout")):
        folder = tmp_path / target
        words = ["plan", str(file), "--for", target, "--json", "--time-limit", "8", "--workers", "1", "-o", str(folder)]
        assert main(words) == 0
        found = json.loads(capsys.readouterr().out)
        values[target] = found["value"]
        assert found["settings"][setting]["value"] == found["value"]
    assert values["megatron-order"] < values["megatron"]
    order = folder / "schedule.megatron-order.json"
    assert main(["export", str(order), "--format", "megatron", "-o", str(tmp_path / "order.py")]) == 0
    assert "install(DOCUMENT)" in (tmp_path / "order.py").read_text()
    assert (folder / "partition.megatron_order.args").is_file()


@pytest.mark.usefixtures("pictures_are_empty")
def test_a_partition_that_is_given_is_told_from_the_best_of_all(file, tmp_path, capsys):
    """It is the best of its kind, and the bound is of its kind; beside it stands what all plans allow."""
    words = ["plan", str(file), "--partition", "flagscale=[0,2]", "--time-limit", "8", "--workers", "1"]
    file.write_text(FILE.replace("capacity: 7", "capacity: 20"))
    folder = tmp_path / "out"
    assert main([*words, "--json", "-o", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["partition"] == [1, 3] and found["restricted_to"] == ["the partition given"]
    assert found["free"]["value"] < found["value"] == found["lower_bound"]
    assert found["free"]["partition"] != [1, 3] and "for" not in found
    assert "For the partition given" in (folder / "report.html").read_text()
    assert main(["check", str(folder / "plan.json")]) == 0
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "no plan with this partition is better" in said and "no plan is better" not in said
    assert f"of all plans: {found['free']['value']:g} ms" in said and "that with this partition takes" in said


def test_a_bound_over_what_a_runtime_can_be_told_says_so(file, capsys):
    assert main(["plan", str(file), "--for", "megatron", "--time-limit", "8", "--workers", "1"]) == 0
    assert "no plan that megatron can express and run is better" in capsys.readouterr().out


def test_a_head_that_lost_a_part_of_its_backward_is_noticed(file, capsys):
    file.write_text(FILE.replace("name: head, forward: 1, backward: 2", "name: head, forward: 3, backward: 2"))
    assert main(["plan", str(file), "--time-limit", "2", "--workers", "1"]) == 0
    assert "layers: head: its backward, 2, is shorter than its forward, 3" in capsys.readouterr().err
    file.write_text(FILE.replace("name: head, forward: 1, backward: 2", "name: head, forward: 3, backward: 0"))
    main(["plan", str(file), "--time-limit", "2", "--workers", "1"])
    assert "shorter than its forward" not in capsys.readouterr().err
