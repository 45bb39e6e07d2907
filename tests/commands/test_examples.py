"""Every example runs, every placement has one, and `new` writes the one to start from without overwriting."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from commands.main import main
from commands.new import TEXT
from pipesched.files.fields.field_types import PLACEMENTS
from pipesched.files.problem_file import read_problem
from tests.support.in_turn import in_turn

FOLDER = Path(__file__).resolve().parents[2] / "examples"
# But those of 40,000 tasks, which have smaller ones beside them.
EXAMPLES = sorted(path for path in FOLDER.glob("*.yaml") if path.stem not in ("kimi-k2", "kimi-k2-offload"))
# What each is there to show, beside that it runs: a schedule that applies and fits.
FITTING = {
    "gpt-1.5b-pp8": "zb-h1",
    "start": "1f1b",
    "heavy-head": "1f1b",
    "v-half-memory": "v-half",
    "dualpipe-blocks": "dualpipe",
    "interleaved-weights": "interleaved-1f1b",
    "wave": "hanayo",
    "kimi-k2-mini": "kimi-k2",
    "kimi-k2-offload-mini": "kimi-k2-offload",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_its_answer(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(path), "--no-optimal", "--json"]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    wanted = FITTING.get(path.stem)
    assert wanted is None or rows[wanted]["fits"]


@in_turn("path", sorted(FOLDER.rglob("*.yaml")), ids=lambda path: path.stem)
def test_no_example_has_an_activation_that_reads_as_a_share(path: Path) -> None:
    """Where an activation is 1, nobody can tell an amount from a share of it."""
    assert not re.search(r"activation: 1(\s|[,}]|$)", path.read_text(encoding="utf-8"))


def test_passes_of_tasks_in_turn_expose_all_communication(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DeepSeek's forward and backward, one after the other, for two micro-batches: 206.887 ms each."""
    path, file = str(FOLDER / "deepseek-pair.yaml"), str(tmp_path / "in-turn.json")
    assert main(["simulate", path, "--schedule", "zb-h1", "--json", "-o", file]) == 0
    found = json.loads(capsys.readouterr().out)
    # The bound: what computes once the first backward can, 31 tasks, and the time until then.
    assert (found["makespan"], found["lower_bound"]) == (2 * 206.887, 260.604)
    assert found["streams"] == [
        {"device": 0, "stream": "compute", "busy": 252.894, "exposed": 0.0},
        {"device": 0, "stream": "comm", "busy": 160.88, "exposed": 160.88},
    ]
    assert main(["validate", file]) == 0
    assert "exposed (comm)" in capsys.readouterr().out
    # Again and again, the other micro-batch hides all of it, as in the best pair.
    assert main(["solve", path, "--objective", "period", "--workers", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["value"], found["lower_bound"]) == (126.447, 126.447)
    assert main(["compare", path, "--no-optimal", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower_bound"] == 260.604
    assert main(["pair", path, "--json", "--workers", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["value"], found["lower_bound"], found["in_turn"]) == (126.447, 126.447, 206.887)


def test_no_published_schedule_knows_the_placement_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(FOLDER / "own-placement.yaml")
    assert main(["solve", path, "--json", "--workers", "1", "--time-limit", "3"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["value"] is not None
    assert found["best_heuristic"] is None


def test_every_placement_has_an_example() -> None:
    assert {read_problem(path).placement.name for path in EXAMPLES} == {*PLACEMENTS, "explicit", "chains"}


def test_the_example_to_start_from_is_what_new_writes() -> None:
    assert (FOLDER / "start.yaml").read_text() == TEXT


def test_new_prints_or_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == 0
    assert capsys.readouterr().out == TEXT
    assert main(["new", str(tmp_path / "mine")]) == 0
    assert (tmp_path / "mine.yaml").read_text() == TEXT
