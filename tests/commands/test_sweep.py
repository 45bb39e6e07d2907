"""`sweep` as a user types it: table, JSON, files, resuming, refusals, exit codes, one cell written out."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from commands.main import main
from commands.reports.sweep import progress_text
from pipesched.files.schedule_file import read_schedule
from pipesched.sweeps.cells import read_sweep
from pipesched.sweeps.packed import schedule_text
from pipesched.sweeps.store import Store
from pipesched.sweeps.table import Row
from solver.sweeps.neighbours import CARRIED
from solver.sweeps.run_sweep import Moment
from tests.support.command_forks import command
from tests.support.sweeps import hard, outcome, sweep

pytestmark = pytest.mark.usefixtures("pictures_are_empty")

SMALL = """
devices: 2
microbatches: 3
time_unit: ms
times: {forward: 2, backward: 2, weight: 1}
memory: {unit: GiB, capacity: 2}
sweep: {memory: [1, 2]}
"""
FAST = ("--jobs", "1", "--time-limit", "20")


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(SMALL)
    return tmp_path


def test_a_sweep_writes_all_and_reads_what_it_knows(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", "small.yaml", "--set", "placement=linear,[0, 2]", *FAST, "-o", "out", "--write", "2", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [axis["field"] for axis in found["axes"]] == ["memory", "placement"]
    assert [cell["status"] for cell in found["cells"]] == ["optimal", "refused", "optimal", "refused"]
    cell = found["cells"][2]
    assert (cell["at"], cell["value"], cell["value_exact"]) == ({"memory": 2, "placement": "linear"}, 18.0, "18")
    assert cell["lower_bound"] == 18.0 and cell["certificate"]["text"] and cell["peak_memory"] == [2.0, 2.0]
    assert "placement[1]: found device 2" in found["cells"][1]["reason"]
    names = {"sweep.sqlite", "results.csv", "memory.png", "makespan-span.png", "report.html", "cell-2.json"}
    assert {Path(path).name for path in found["files"]} == names
    assert names | {"pipesched-manifest.json"} == {path.name for path in (small / "out").iterdir()}
    assert read_schedule("out/cell-2.json").value == 18
    assert main(["check", "out/cell-2.json"]) == main(["validate", "out/cell-2.json"]) == 0
    rows = list(csv.DictReader((small / "out" / "results.csv").open()))
    assert [row["value_exact"] for row in rows] == [str(found["cells"][0]["value_exact"]), "", "18", ""]
    assert rows[0]["memory"] == "1.0" and rows[1]["placement"] == "[0, 2]"
    capsys.readouterr()
    assert main([*command[:-1]]) == 0
    again = capsys.readouterr()
    assert "0 solved now, 2 known before" in again.out
    assert "refused (cells 1, 3): placement[1]: found device 2" in again.out


def test_without_a_folder_the_results_are_kept_beside(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "small.yaml", *FAST, "--objective", "span"]) == 0
    assert (small / "small.sweep.sqlite").exists()
    assert "2 optimal; 2 solved now" in capsys.readouterr().out
    assert main(["sweep", "small.yaml", *FAST, "--objective", "span", "--store", "small.sweep.sqlite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["read"] == 2


def test_other_commands_read_a_file_with_a_sweep_section(small: Path) -> None:
    assert main(["compare", "small.yaml", "--no-optimal"]) == 0


def test_all_cells_without_a_schedule(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "small.yaml", "--set", "memory=0.5", *FAST, "-o", "out", "--write", "0"]) == 1
    said = capsys.readouterr()
    assert "infeasible (cell 0): memory: device 0 must hold" in said.out
    assert "--write 0: the cell has no schedule" in said.err
    assert not list((small / "out").glob("*.png"))


def test_a_bound_from_another_cell_is_written_and_checked(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A schedule file whose bound was proved with more memory says so, and nothing in it contradicts another part."""
    assert main(["sweep", "small.yaml", *FAST, "-o", "out", "--objective", "span"]) == 0
    key = read_sweep("small.yaml", objective="span").cells[0].key
    with Store("out/sweep.sqlite") as store:
        known = store.get(key)
    assert known is not None and known.value is not None
    weaker = replace(known, lower_bound=known.value - Fraction(1, 3), kind=CARRIED, claim="a device works so long")
    (small / "one.json").write_text(schedule_text(weaker))
    file = read_schedule("one.json")
    tick = file.timeline.problem.tick
    assert file.certificate is not None and file.certificate.kind == CARRIED
    assert (file.lower_bound_ticks or 0) * tick == weaker.lower_bound and (file.value_ticks or 0) * tick == known.value
    assert main(["validate", "one.json"]) == 0
    assert "a device works so long" in (small / "one.json").read_text()


def test_cells_of_other_stages_are_said_to_be_other_models(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["sweep", "small.yaml", "--set", "placement=linear,v-shape", "--set", "memory=2", *FAST]
    assert main(options) == 0
    assert "cells have 2 and 4 stages in a chain" in capsys.readouterr().err
    assert main([*options, "--same-model", "--json"]) == 0
    said = capsys.readouterr()
    assert "stages in a chain" not in said.err
    linear, v_shape = json.loads(said.out)["cells"]
    assert v_shape["value"] <= linear["value"]


def test_progress_tells_the_time_left() -> None:
    row = Row(sweep("memory=1,2").cells[1], outcome(10, 9))
    assert progress_text(Moment(9, 3, 2, 60.0, 125.0, row)) == (
        "  60.0 s  3 of 9 cells done, 2 running, about 2 min left  (memory 2: gap 10.00 %)"
    )
    assert progress_text(Moment(9, 0, 0, 0.0, None, None)) == "   0.0 s  0 of 9 cells done"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_keeps_what_was_found(small: Path) -> None:
    """A cell that would search for ten minutes; what was found of it until then is in the store, to go on from."""
    (small / "hard.yaml").write_text(json.dumps(hard() | {"sweep": {"transfer": [0, 0.7]}}))
    process = command(small, "sweep", "hard.yaml", "-o", "out", "--jobs", "1", "--time-limit", "600")
    assert process.stderr is not None
    assert "0 of 2 cells done" in process.stderr.readline()
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted: all cells solved until then are kept" in err
    assert "1 waiting" in out
