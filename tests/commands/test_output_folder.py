"""A folder that is written into again: files of an earlier problem go, those of others and changed ones stay."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from commands.main import main
from commands.shared.output_folder import MANIFEST, record_output
from pipesched.version import VERSION
from runtime.pytorch.processes.launch import RunFailed

pytestmark = pytest.mark.usefixtures("pictures_are_empty")

SURE = ["--workers", "1", "--time-limit", "60"]
TIMES = "times: {forward: 1, backward: 1, weight: 1}"
LINEAR = f"{{devices: 2, microbatches: 2, {TIMES}}}"
BIDIRECTIONAL = f"{{devices: 2, microbatches: 2, placement: bidirectional, {TIMES}}}"  # PyTorch has no CSV for it
INFEASIBLE = f"{{devices: 2, microbatches: 2, placement: v-shape, {TIMES}, memory: {{capacity: 1, activation: 1}}}}"
CSV = {"schedule.csv", "schedule.meta.json"}


def solve(folder: Path, text: str) -> int:
    (folder / "problem.yaml").write_text(text)
    return main(["solve", str(folder / "problem.yaml"), "-o", str(folder / "out"), *SURE])


@pytest.fixture
def out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The folder after one solve, which wrote a CSV."""
    assert solve(tmp_path, LINEAR) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} >= CSV
    assert "note" not in capsys.readouterr().err.replace("note on the CSV", "")
    return tmp_path / "out"


def test_the_manifest_names_every_file_with_hash_command_and_version(out: Path) -> None:
    entries = json.loads((out / MANIFEST).read_text())["files"]
    assert set(entries) == {path.name for path in out.iterdir()} - {MANIFEST}
    for name, entry in entries.items():
        content = hashlib.sha256((out / name).read_bytes()).hexdigest()
        assert entry == {"command": "solve", "sha256": content, "version": VERSION}


def test_what_the_next_solve_does_not_write_is_removed(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "mine.csv").write_text("of the user")
    assert solve(tmp_path, BIDIRECTIONAL) == 0
    left = {path.name for path in out.iterdir()}
    assert not left & CSV
    assert {"mine.csv", "schedule.json", "gantt.png"} <= left
    assert set(json.loads((out / MANIFEST).read_text())["files"]) == left - {"mine.csv", MANIFEST}
    said = capsys.readouterr().err
    for name in CSV:
        assert f"removed {out / name}" in said


def test_a_file_that_the_user_changed_is_left_and_named(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "schedule.csv").write_text("changed")
    assert solve(tmp_path, BIDIRECTIONAL) == 0
    assert (out / "schedule.csv").read_text() == "changed"
    assert not (out / "schedule.meta.json").exists()
    assert f"note: {out / 'schedule.csv'}" in capsys.readouterr().err
    assert solve(tmp_path, BIDIRECTIONAL) == 0  # from now on it is a file of the user's, of which nothing is said
    assert str(out / "schedule.csv") not in capsys.readouterr().err


def test_a_solve_that_finds_nothing_leaves_the_folder_and_says_so(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert solve(tmp_path, INFEASIBLE) == 1
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert f"nothing was written; {out}" in capsys.readouterr().err


def test_a_run_that_fails_says_whose_files_are_there(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RunFailed("stalled")

    monkeypatch.setattr("commands.run.need_torch", lambda: None)
    monkeypatch.setattr("commands.run.execute", fail)
    arguments = ["run", str(out / "schedule.json"), "-o", str(out)]
    assert main(arguments) == 1
    assert "still holds" not in capsys.readouterr().err  # only a solve wrote there
    (out / "measured.json").write_text("{}")
    record_output(out, "run", [out / "measured.json"])
    assert main(arguments) == 1
    assert "an earlier `run`" in capsys.readouterr().err


def test_commands_keep_to_their_own_files(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    record_output(tmp_path, "solve", [tmp_path / "a", tmp_path / "b"])
    record_output(tmp_path, "run", [tmp_path / "c"])
    record_output(tmp_path, "solve", [tmp_path / "a"])
    assert {path.name for path in tmp_path.iterdir()} == {"a", "c", MANIFEST}
    assert set(json.loads((tmp_path / MANIFEST).read_text())["files"]) == {"a", "c"}


def test_a_plan_removes_what_a_solve_of_another_problem_wrote(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (out / "measured.json").write_text("{}")
    record_output(out, "run", [out / "measured.json"])
    (tmp_path / "model.yaml").write_text(
        "{devices: 2, microbatches: 2, placement: bidirectional, layers: [{name: a, count: 4, forward: 1, backward: 2}]}"
    )
    assert main(["plan", str(tmp_path / "model.yaml"), "-o", str(out), "--workers", "1", "--time-limit", "3"]) == 0
    left = {path.name for path in out.iterdir()}
    assert not left & CSV and {"plan.json", "schedule.json", "measured.json"} <= left
    entries = json.loads((out / MANIFEST).read_text())["files"]
    assert {entry["command"] for entry in entries.values()} == {"plan", "run"}
    assert "which an earlier `solve` wrote" in capsys.readouterr().err
    assert solve(tmp_path, LINEAR) == 0
    assert "plan.json" not in {path.name for path in out.iterdir()}
    assert solve(tmp_path, INFEASIBLE) == 1
    assert "still holds what an earlier `solve` wrote there" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"a": 1}}', '{"files": [1]}', '{"files": {"a": {"command": "solve"}}}'])  # fmt: skip
def test_a_manifest_that_is_none_of_ours_removes_nothing(text: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    (tmp_path / MANIFEST).write_text(text)
    record_output(tmp_path, "solve", [tmp_path / "b"])
    assert {path.name for path in tmp_path.iterdir()} == {"a", "b", MANIFEST}


def test_a_manifest_cannot_reach_out_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for path in (tmp_path / "precious", folder / "b"):
        path.write_text("x")
    entry = {"command": "solve", "sha256": hashlib.sha256(b"x").hexdigest(), "version": VERSION}
    for name in ("../precious", str(tmp_path / "precious")):
        (folder / MANIFEST).write_text(json.dumps({"files": {name: entry}}))
        record_output(folder, "solve", [folder / "b"])
        assert (tmp_path / "precious").exists()
