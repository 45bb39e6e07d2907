"""What commands answer: reasons together, one exit code for one cause, suggestions, figures with fit and gap."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from commands.main import main
from tests.support.report_text import report_text

DOCUMENT = "devices: 4\nmicrobatches: 8\ntimes: {forward: 1, backward: 1, weight: 1}\n"
SURE = ["--workers", "1", "--time-limit", "60"]
PLACEMENTS = ["linear", "interleaved", "v-shape", "wave", "bidirectional", "[0, 1, 2, 3]"]


def written(folder: Path, text: str, name: str = "problem.yaml") -> str:
    path = folder / name
    path.write_text(DOCUMENT + text)
    return str(path)


@pytest.fixture
def v(tmp_path: Path) -> str:
    return written(tmp_path, "placement: v-shape\nmemory: {capacity: 5}\n")


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("capacity", ["0.5", "[4, 4, 4, 0.5]"])
def test_too_little_memory_is_an_answer_on_every_placement(
    placement: str, capacity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, f"placement: {placement}\nmemory: {{capacity: {capacity}}}\n")
    assert main(["solve", path]) == 1
    assert main(["compare", path, "--no-optimal"]) == 1
    assert capsys.readouterr().err.count("infeasible: memory: device") == 2


def test_schedules_that_do_not_apply_stand_together_by_reason(v: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", v, "--no-optimal"]) == 0
    said = capsys.readouterr().out
    counted = re.search(r"\n(\d+) other schedules do not apply \(--why-not", said)
    assert counted and "\n- " not in said
    assert main(["compare", v, "--no-optimal", "--why-not"]) == 0
    said = capsys.readouterr().out.partition("do not apply:\n")[2]
    assert "- chimera, dualpipe: " in said
    reasons = [line[2:].partition(": ")[0].split(", ") for line in said.splitlines() if line.startswith("- ")]
    assert len(reasons) < 7
    assert sum(map(len, reasons)) == int(counted[1])


@pytest.mark.usefixtures("pictures_are_empty")
def test_why_not_says_where_schedules_exceed_the_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GPipe and others run six forwards of a tick each on the first device before its first backward: one too many."""
    path, out = written(tmp_path, "memory: {capacity: 5}\n"), tmp_path / "out"
    assert main(["compare", path, "--no-optimal", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    larger = sorted(row["schedule"] for row in rows if row["status"] == "ok" and not row["fits"])
    assert "gpipe" in larger and len(larger) > 1
    for command in (["compare", path, "--no-optimal"], ["solve", path, *SURE, "-o", str(out)]):
        main(command)
        assert "fit the memory" not in capsys.readouterr().out
        main([*command, "--why-not"])
        lines = capsys.readouterr().out.splitlines()
        at = lines.index(f"{len(larger)} schedules do not fit the memory:")
        reasons = dict(line[2:].split(": ", 1)[::-1] for line in lines[at + 1 : lines.index(_after(lines, at))])
        assert sorted(name for names in reasons.values() for name in names.split(", ")) == larger
        where = "device 0 holds 6 activations when F0.5 starts at 5; its capacity is 5 activations"
        assert "gpipe" in reasons[where].split(", ")
    report = report_text(out / "report.html")
    assert f"{len(larger)} schedules do not fit the memory" in report and where in report


def _after(lines: Sequence[str], at: int) -> str:
    return next(line for line in lines[at + 1 :] if not line.startswith("- "))


def test_compare_reads_schedule_files(v: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = str(tmp_path / "held.json")
    assert main(["simulate", v, "--schedule", "v-min", "-o", held]) == 0
    capsys.readouterr()
    assert main(["compare", v, "--no-optimal", "--schedules", "v-min", "--with", held, "--json"]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["held.json"]["value"] == rows["v-min"]["value"]


def figures(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    return {name.strip(): value.strip() for _, name, value, _ in rows}


@pytest.mark.usefixtures("pictures_are_empty")
def test_validate_shows_the_gap_of_a_solved_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, "")
    assert main(["solve", path, "--workers", "1", "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert main(["validate", str(tmp_path / "out" / "schedule.json")]) == 0
    shown = figures(capsys)
    assert (shown["gap to bound (of makespan)"], shown["lower bound (makespan)"]) == ("0.00 %", shown["makespan"])


def test_what_does_not_fit_is_said_however_narrow_the_terminal_is(
    v: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column of gaps is left out where three problems do not fit beside each other; what memory lacks is not."""
    other = [written(tmp_path, f"name: v{n}\nplacement: v-shape\nmemory: {{capacity: 5}}\n", f"{n}.yaml") for n in "ab"]
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("commands.shared.tables.width", lambda: 60)
    assert main(["compare", v, *other, "--no-optimal", "--schedules", "zbv"]) == 0
    assert capsys.readouterr().out.count("does not fit: needs 8 of 5 activations") == 3


def test_schedules_of_which_none_applies_are_no_table(v: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", v, "--no-optimal", "--schedules", "dualpipe"]) == 1
    answer = capsys.readouterr()
    assert "none of these schedules applies" in answer.err
    assert "bidirectional" in answer.out
    assert "┏" not in answer.out


def test_several_problems_stand_side_by_side(v: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flat = written(tmp_path, "name: flat\n", "flat.yaml")
    assert main(["compare", v, flat, "--no-optimal"]) == 0
    rows = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    cells = {row[1].strip(): [cell.strip() for cell in row[2:-1]] for row in rows}
    assert cells["1f1b"][:2] == ["–", ""]
    assert cells["zbv"][1:] == ["–", "–", ""]
    named = [row[1].strip() for row in rows]
    needed = rows[named.index("zbv") + 1]  # the second line of its cell
    assert needed[2].strip() == "does not fit: needs 8 of 5 activations"
    assert named.index("zbv") > named.index("v-min")
    assert main(["compare", v, flat, "--no-optimal", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)["problems"]
    for path, held in zip((v, flat), both, strict=True):
        assert main(["compare", path, "--no-optimal", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == held


def test_an_order_with_its_parameter_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loop.yaml"
    path.write_text(
        "devices: 2\nmicrobatches: 6\nplacement: interleaved\nchunks: 2\ntimes: {forward: 1, backward: 2}\n"
    )
    assert main(["compare", str(path), "--no-optimal", "--schedules", "interleaved-1f1b:3,vpp", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["schedule"] for row in rows} == {"interleaved-1f1b:3", "interleaved-1f1b"}
