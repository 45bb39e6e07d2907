"""The command line as a user types it: output, files, JSON and exit codes."""

from __future__ import annotations

import json
import os
import platform
import shlex
from argparse import ArgumentTypeError
from fractions import Fraction
from pathlib import Path

import pytest

from commands.main import main
from commands.options.values import share
from heuristics.catalogue import HEURISTICS
from pipesched.files.schedule_file import read_schedule
from pipesched.problem.problem import Objective, Problem
from pipesched.results.certificate import Certificate
from pipesched.validation.validator import validate
from pipesched.version import VERSION
from solver.engine import analytic_bounds
from tests.support.pictures import empty_pictures
from tests.support.report_text import report_text

# The names the contract promises.
NAMES = [
    "gpipe", "1f1b", "1f1b-small-ends", "interleaved-small-ends", "looped-bfs", "interleaved-1f1b",
    "interleaved-zb", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb", "zbv", "zbv-cost-aware", "v-half-cost-aware",
    "v-min-cost-aware", "v-half", "v-min", "v-block", "dualpipe", "dualpipe-v", "chimera", "hanayo",
    "1f1b-overlap", "interleaved-1f1b-overlap", "kimi-k2", "kimi-k2-offload", "generalised-interleaved",
    "pipeoffload-full", "pipeoffload-half", "uniform-recompute", "recycle", "seq1f1b", "slimpipe", "terapipe",
    "vocab-1f1b",
]  # fmt: skip
FILE = """
name: small
devices: 2
microbatches: 3
time_unit: ms
times: {forward: 1.5, backward: 1.5, weight: 0.5, transfer: 0.1}
memory: {capacity: 2, activation: 1}
objective: span
"""
SURE = ["--workers", "1", "--time-limit", "60"]


@pytest.fixture
def solved(small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    with empty_pictures():
        assert main(["solve", small, "-o", str(tmp_path / "out"), *SURE]) == 0
    capsys.readouterr()
    return tmp_path / "out" / "schedule.json"


def test_a_folder_is_checked_by_the_answer_in_it_and_named_by_other_commands(
    solved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(solved.parent)]) == 0
    assert capsys.readouterr().out.startswith(f"{solved}: the schedule is valid")
    assert main(["validate", str(solved.parent)]) == 2
    assert capsys.readouterr().err == (
        f"pipesched: {solved.parent}: found a folder; allowed: a file, such as {solved}\n"
    )


def test_a_solve_without_a_folder_names_the_same_command_with_one(
    small: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPESCHED_PROGRAM", "python3 go.py")
    assert main(["solve", small, "--objective", "makespan", *SURE]) == 0
    typed = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("next: "))
    words = ["solve", small, "--objective", "makespan", *SURE, "-o", "results"]
    assert typed == f"next: python3 go.py {shlex.join(words)}"


def test_solve_prints_the_table_and_writes_everything(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["solve", small, "-o", str(out), *SURE, "--why-not"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("optimal: span")
    assert said.out.splitlines()[1].startswith("recommended: pipesched (the schedule found), ")
    for word in ("1f1b", "gpipe", "zb-h1", "pipesched", "optimal: span", "lower bound", "peak memory", "why none"):
        assert word in said.out
    assert "bound" in said.err
    written = {path.name for path in out.iterdir()}
    assert written == {
        "schedule.json", "gantt.png", "memory.png", "report.html", "schedule.csv", "schedule.meta.json",
        "pipesched-manifest.json",
    }  # fmt: skip
    assert (out / "gantt.png").read_bytes().startswith(b"\x89PNG")
    assert not validate(read_schedule(out / "schedule.json").timeline)
    report = report_text(out / "report.html")
    assert "\npipesched | " in report
    assert "## Why not better" in report and "Checked without the solver" in report
    # The schedules that do not fit or do not apply are grouped by their reason, as on the terminal.
    reasons = [line[2:] for line in said.out.splitlines() if line.startswith("- ")]
    shown = [line for line in report.splitlines() if ": needs " in line or "; its capacity is " in line]
    assert shown == reasons and any("; its capacity is " in line for line in shown)
    assert len(reasons) > 2


def test_solve_json_is_one_object_with_the_keys_of_the_contract(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", small, "--json", *SURE]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {
        "name", "objective", "status", "value", "lower_bound", "gap", "makespan", "span", "period", "bubble",
        "idle", "idle_ratio", "idle_causes", "recommended", "peak_memory", "memory_capacity", "certificate", "best_heuristic", "wall_seconds", "files",
        "under_noise", "not_tried", "notes", "streams", "decisions",
    }  # fmt: skip
    assert document["status"] == "optimal"
    assert document["value"] == document["lower_bound"] == document["span"]
    assert document["gap"] == 0.0
    assert document["period"] is None
    assert document["memory_capacity"] == [2.0, 2.0]
    assert set(document["bubble"]) == set(document["idle"]) == {"makespan", "span"}
    assert set(document["certificate"]) == {"kind", "text"}


def test_an_infeasible_cap_is_answered_with_device_and_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "v.yaml"
    path.write_text(
        "devices: 2\nmicrobatches: 2\nplacement: v-shape\ntimes: {forward: 1, backward: 1, weight: 1}\n"
        "memory: {capacity: 1}\n"
    )
    assert main(["solve", str(path), "--json", "-o", str(tmp_path / "out")]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "infeasible"
    assert document["value"] is None
    assert document["reason"].startswith("memory: device 0")
    assert not (tmp_path / "out").exists()
    assert main(["solve", str(path)]) == 1
    assert "infeasible: memory: device 0" in capsys.readouterr().err
    assert main(["compare", str(path)]) == 1


def test_compare_lists_every_schedule_and_the_best(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", small, "--json", *SURE]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = {row["schedule"]: row for row in document["rows"]}
    assert set(document) == {"name", "objective", "rows", "lower_bound"}
    assert rows["pipesched"]["value"] == document["lower_bound"]
    assert rows["interleaved-1f1b"]["status"] == "does not apply"
    assert "several stages a device" in rows["interleaved-1f1b"]["reason"]
    assert rows["gpipe"]["fits"] is False
    assert "capacity is 2" in rows["gpipe"]["reason"]
    for row in rows.values():
        assert {
            "schedule", "value", "makespan", "span", "bubble", "idle", "peak_memory", "fits", "gap", "status",
            "reason",
        } == set(row)  # fmt: skip
        if row["fits"]:
            assert row["value"] >= document["lower_bound"]


def test_compare_lists_on_long_problems_what_the_search_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.yaml"
    path.write_text("devices: 4\nmicrobatches: 1700\ntimes: {forward: 1, backward: 1, weight: 1}\n")
    assert main(["compare", str(path), "--schedules", "1f1b,zb-h1", "--json", "--time-limit", "5"]) == 0
    assert {row["schedule"] for row in json.loads(capsys.readouterr().out)["rows"]} == {"1f1b", "zb-h1", "pipesched"}


@pytest.mark.usefixtures("pictures_are_empty")
def test_what_was_found_is_told_even_where_a_file_cannot_be_written(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder lies where the last file belongs: as on a full disk, a search of hours must not be lost."""
    (tmp_path / "report.html").mkdir()
    words = ["solve", small, "--json", "--time-limit", "5", "--workers", "1", "-o", str(tmp_path)]
    assert main(words) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["files"] == [] and json.loads(said.out)["value"] is not None
    assert "report.html: cannot be written" in said.err


def test_simulate_json(small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", small, "--schedule", "zb-h1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    keys = {
        "name", "schedule", "makespan", "span", "bubble", "idle", "idle_ratio", "idle_causes", "peak_memory",
        "orders", "streams", "decisions",
    }  # fmt: skip
    assert set(document) == keys | {"fits", "lower_bound", "gap"}
    assert document["orders"][0][:3] == ["F0.0", "F0.1", "B0.0"]


def test_simulate_as_a_user_of_the_older_visualiser_types_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "--num-stages", "4", "--num-batches", "8"]) == 0
    assert (tmp_path / "pipeline_1f1b.png").exists()
    said = capsys.readouterr().out
    assert "33" in said  # (8 + 4 - 1) x (1 + 2)
    flags = [
        "-s", "3", "-b", "5", "-f", "0.8", "1.0", "1.2", "-bw", "1.6", "2.0", "2.4", "--p2p-time", "0.1", "-o",
        "own.png",
    ]  # fmt: skip
    assert main(["simulate", *flags]) == 0
    assert (tmp_path / "own.png").exists()
    capsys.readouterr()
    assert main(["simulate", *flags[:-2], "--no-visualization", "--json"]) == 0
    flagged = json.loads(capsys.readouterr().out)
    config = {"num_stages": 3, "num_batches": 5, "forward_times": [0.8, 1.0, 1.2], "backward_times": [1.6, 2.0, 2.4],
              "p2p_time": 0.1, "output_file": "from_config.png"}  # fmt: skip
    (tmp_path / "sample_config.json").write_text(json.dumps(config))
    assert main(["simulate", "--config", "sample_config.json", "--json"]) == 0
    configured = json.loads(capsys.readouterr().out)
    assert (tmp_path / "from_config.png").exists()
    assert configured["orders"] == flagged["orders"]
    assert configured["makespan"] == flagged["makespan"]
    (tmp_path / "sample_config.yaml").write_text(
        "# Pipeline Parallelism Configuration\nnum_stages: 2\nnum_batches: 2\nforward_times:\n  - 0.9\n  - 1.1\n"
        'backward_times:\n  - 1.8\n  - 2.2\noutput_file: "pipeline_1f1b_yaml.png"\n'
    )
    assert main(["simulate", "-c", "sample_config.yaml"]) == 0
    assert (tmp_path / "pipeline_1f1b_yaml.png").exists()
    assert main(["solve", "sample_config.yaml", *SURE]) == 0  # every command reads it


def test_validate_accepts_what_solve_wrote_and_names_what_is_broken(
    solved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["validate", str(solved)]) == 0
    assert "valid" in capsys.readouterr().out
    document = json.loads(solved.read_text())
    document["starts"]["B0.0"] = 0
    solved.write_text(json.dumps(document))
    assert main(["validate", str(solved), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["valid"] is False
    assert verdict["deadlock_free"] is True
    assert verdict["cycle"] is None
    assert any("B0.0" in violation["passes"] for violation in verdict["violations"])


def test_validate_refutes_freedom_from_deadlock_with_the_cycle(
    solved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(solved.read_text())
    order = document["orders"][1]
    document["orders"][1] = sorted(order, key=lambda text: text[0] != "B")  # backwards before forwards
    solved.write_text(json.dumps(document))
    assert main(["validate", str(solved)]) == 1
    assert "waits for" in capsys.readouterr().out


def test_export_writes_beside_the_schedule_or_where_asked(
    solved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(solved), "--format", "torch-csv", "-o", str(tmp_path / "mine.csv")]) == 0
    assert (tmp_path / "mine.csv").read_text().startswith("0F0")
    assert (tmp_path / "mine.meta.json").exists()
    assert main(["export", str(solved), "--format", "chrome-trace", "--json"]) == 0
    said = capsys.readouterr().out
    files = json.loads(said[said.index("{") :])["files"]
    assert "traceEvents" in json.loads(Path(files[0]).read_text())


PLAN = "devices: 2\nmicrobatches: 2\nlayers: [{name: a, count: 2, forward: 1, backward: 2}]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE, ["solve", *SURE]),
        (FILE, ["simulate", "--no-visualization"]),
        (FILE, ["compare", "--schedules", "1f1b", *SURE]),
        (PLAN, ["plan", *SURE]),
        (PLAN, ["compare", "--schedules", "1f1b", *SURE]),
        (None, ["simulate"]),
        (None, ["check"]),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "plan" if one == PLAN else "problem" if one else "schedule",
)
def test_files_come_through_pipes_too(text: str | None, words: list[str], solved: Path) -> None:
    """As `pipesched solve <(make-problem)`: what is read once is gone."""
    end, start = os.pipe()
    os.write(start, solved.read_bytes() if text is None else text.encode())
    os.close(start)
    try:
        assert main([words[0], f"/dev/fd/{end}", *words[1:]]) == 0
    finally:
        os.close(end)


def test_export_to_a_pipe_is_the_main_file_alone(
    solved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ends = os.open(pipe, os.O_RDWR)  # so that writing waits for no reader
    assert main(["export", str(solved), "--format", "torch-csv", "-o", str(pipe)]) == 0
    assert os.read(ends, 10).startswith(b"0F0")
    os.close(ends)
    assert not (tmp_path / "pipe.meta.json").exists()
    out, err = capsys.readouterr()
    assert out == "" and "pipe.meta.json is not written" in err


def test_export_overwrites_its_schedule_with_no_side_file(
    solved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = tmp_path / "mine.meta.json"
    schedule.write_bytes(solved.read_bytes())
    assert main(["export", str(schedule), "--format", "torch-csv", "-o", str(tmp_path / "mine.csv")]) == 2
    assert "mine.meta.json, the schedule file itself" in capsys.readouterr().err
    assert schedule.read_bytes() == solved.read_bytes() and not (tmp_path / "mine.csv").exists()


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.html", b"<!doctype html>")]
)
def test_plot_formats(solved: Path, tmp_path: Path, name: str, start: bytes) -> None:
    assert main(["plot", str(solved), "-o", str(tmp_path / name)]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)


def test_plot_draws_a_part(solved: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.png"
    assert main(["plot", str(solved), "--kind", "streams", "--zoom", "1:3", "-o", str(part)]) == 0
    assert part.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("pictures_are_empty")
def test_the_period_has_its_column_wherever_it_is_minimised(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", small, "--objective", "period", "--no-optimal", "--json"]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["1f1b"]["value"] > 0
    assert rows["1f1b"]["bubble"].keys() == {"makespan", "span", "period"}
    out = tmp_path / "out"
    assert main(["solve", small, "--objective", "period", "-o", str(out)]) == 0
    head = " ".join(capsys.readouterr().out.split("┡")[0].split())
    assert "minimise period" in head
    assert head.count("period ┃") == 1 and "(of period)" in head  # the value, and what the gap is a share of
    assert "bubble rate" in head
    columns = "period | makespan | span | idle (mean over devices) | bubble rate (busiest device) | peak memory ("
    assert columns in report_text(out / "report.html")
    page = tmp_path / "page.html"
    assert main(["plot", str(out / "schedule.json"), "-o", str(page)]) == 0
    assert "<p>period " in page.read_text()
    assert "bubble rate (busiest device)" in page.read_text()


NOTHING = "{devices: 1, microbatches: 1, times: {forward: 0, backward: 0}, memory: {capacity: 4, activation: 0}}"


@pytest.mark.parametrize("command", ["solve --then-memory", "frontier"])
def test_one_of_nothing_is_said_in_plain_words(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nothing.yaml"
    path.write_text(NOTHING)
    name, *flags = command.split()
    assert main([name, str(path), *flags]) == 0
    said = capsys.readouterr()
    assert "1 device, 1 micro-batch ·" in said.out
    assert "0 activations" in said.out
    assert "less" not in said.out


@pytest.mark.parametrize("gap", ["100%", "1", "1.0", "1e0"])
def test_a_gap_is_a_percentage_or_a_number(gap: str, small: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", small, "--gap", gap, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] in {"feasible", "optimal"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5%", Fraction(1, 20)),
        ("0.05", Fraction(1, 20)),
        ("1e-4", Fraction(1, 10000)),
        (".5", Fraction(1, 2)),
        ("0", 0),
    ],
)
def test_shares(text: str, value: Fraction) -> None:
    assert share(text) == value


@pytest.mark.parametrize("text", ["101%", "-1", "nan", "%", "", "1e-999999999", "1/2", "5 %"])
def test_what_is_no_share(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="allowed: a share from 0 to 1"):
        share(text)


def test_schedules_lists_the_catalogue(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["schedules", "--json"]) == 0
    names = {entry["name"] for entry in json.loads(capsys.readouterr().out)["schedules"]}
    assert names == set(HEURISTICS.names()) >= set(NAMES)
    monkeypatch.setenv("COLUMNS", "250")
    assert main(["schedules"]) == 0
    assert "arXiv 2401.10241" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_validate_leaves_deadlock_open_where_passes_are_missing(
    solved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(solved.read_text())
    document["orders"][0] = document["orders"][0][:-1]
    solved.write_text(json.dumps(document))
    assert main(["validate", str(solved), "--json"]) == 1
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["deadlock_free"] is None


def test_times_too_fine_for_exact_sums_still_get_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fine.yaml"
    path.write_text(
        "devices: 4\nmicrobatches: 8\n"
        "times: {forward: [1.0e-6, 1.0e6, 1, 1.0e-3], backward: [3, 1.0e-6, 1.0e6, 2], weight: 1.0e-9}\n"
    )
    assert main(["solve", str(path), "--workers", "1", "--time-limit", "1"]) == 0
    said = capsys.readouterr()
    assert "rounded" in said.out + said.err


def test_simulate_writes_a_schedule_file_that_export_and_validate_read(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    flags = ["-s", "3", "-b", "4", "-f", "1", "-bw", "2"]
    assert main(["simulate", *flags, "-o", str(path)]) == 0
    assert read_schedule(path).timeline.schedule.name == "1f1b"
    assert main(["validate", str(path)]) == 0
    assert main(["export", str(path), "--format", "torch-csv", "-o", str(tmp_path / "one.csv")]) == 0


def test_version_names_what_results_depend_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from importlib.metadata import PackageNotFoundError

    def found(library: str) -> str:
        if library == "torch":
            raise PackageNotFoundError(library)
        return "9.99"

    monkeypatch.setattr("commands.shared.versions.version", found)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    python = platform.python_version()
    assert capsys.readouterr().out == f"pipesched {VERSION} (Python {python}, ortools 9.99, numba 9.99, numpy 9.99)\n"
    monkeypatch.setattr("commands.shared.versions.version", lambda _: "9.99")
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.strip().endswith(", numpy 9.99, torch 9.99)")


@pytest.mark.meets_defects
@pytest.mark.usefixtures("pictures_are_empty")
def test_a_defect_of_the_tool_is_told_and_no_traceback(
    small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound above every schedule: on the terminal, in the report and in JSON, with what to do."""
    true = analytic_bounds.certificates

    def wrong(problem: Problem, objective: Objective, *_: object) -> list[Certificate]:
        return [Certificate("wrong", 10**9, "a claim that is not true"), *true(problem, objective)]

    monkeypatch.setattr(analytic_bounds, "certificates", wrong)
    out = tmp_path / "out"
    assert main(["solve", small, "-o", str(out), *SURE]) == 0
    said = capsys.readouterr().out
    for text in (said, report_text(out / "report.html")):
        assert "A DEFECT OF PIPESCHED" in text
        assert "Please report this with the problem file." in text
    assert main(["solve", small, "--json", *SURE]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "a claim that is not true" in document["notes"][0]
    assert document["status"] == "optimal"
    assert document["certificate"]["kind"] != "wrong"
