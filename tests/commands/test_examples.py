"""Every example runs, every placement has one, and `new` writes the one to start from without overwriting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from commands.main import main
from commands.new import TEXT
from pipesched.files.field_types import PLACEMENTS
from pipesched.files.problem_file import read_problem

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))
# What each is there to show, beside that it runs: a schedule that applies and fits.
FITTING = {
    "gpt-1.5b-pp8": "zb-h1",
    "start": "1f1b",
    "heavy-head": "1f1b",
    "v-half-memory": "v-half",
    "dualpipe-blocks": "dualpipe",
    "interleaved-weights": "interleaved-1f1b",
    "wave": "hanayo",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_its_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(path), "--no-optimal", "--json"]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    wanted = FITTING.get(path.stem)
    assert wanted is None or rows[wanted]["fits"]


def test_no_published_schedule_knows_the_placement_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FOLDER / "own-placement.yaml")
    assert main(["solve", path, "--json", "--workers", "1", "--time-limit", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] is not None
    assert found["best_heuristic"] is None


def test_every_placement_has_an_example() -> None:
    assert {read_problem(path).placement.name for path in EXAMPLES} == {*PLACEMENTS, "explicit"}


def test_the_example_to_start_from_is_what_new_writes() -> None:
    assert (FOLDER / "start.yaml").read_text() == TEXT


def test_new_prints_or_writes_and_never_overwrites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == 0
    assert capsys.readouterr().out == TEXT
    assert main(["new", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine.yaml").read_text() == TEXT
    (tmp_path / "mine.yaml").write_text("kept")
    assert main(["new", str(tmp_path / "mine.yaml")]) == 2
    assert "mine.yaml" in capsys.readouterr().err
    assert (tmp_path / "mine.yaml").read_text() == "kept"
