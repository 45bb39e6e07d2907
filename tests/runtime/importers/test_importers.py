"""Schedules of other programs: read back as they were written, or refused with the place and the reason."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from commands.shared.file_arguments import write_schedule
from heuristics.catalogue import HEURISTICS
from pipesched.errors import BadInput
from pipesched.files.problem_file import problem_from
from pipesched.files.schedule_file import ScheduleFile, to_text
from pipesched.problem.passes import F
from pipesched.problem.problem import Problem
from pipesched.schedule.metrics import measure
from pipesched.schedule.schedule import Schedule
from pipesched.simulation.simulator import simulate
from runtime.exporters.catalogue import EXPORTERS
from runtime.importers.catalogue import import_schedule
from solver.solve import solve
from tests.support.counted import counted
from tests.support.makers import problem

ORDERS = [("1f1b", "linear", 1), ("zb-h1", "linear", 1), ("zb-2p", "linear", 1), ("interleaved-1f1b", "interleaved", 2)]


def nodes(schedule: Schedule, one: Problem) -> list[list[dict[str, object]]]:
    """The zero-bubble repository's form of a schedule."""
    return [
        [
            {"type": p.kind.value, "stage": device, "microbatch": p.microbatch,
             "chunk": one.placement.chunk(p.stage), "layer_group_idx": p.stage}
            for p in schedule.passes_on(device)
        ]
        for device in range(one.devices)
    ]  # fmt: skip


def made(name: str, placement: str, chunks: int) -> tuple[Problem, Schedule]:
    one = problem(3, 6, placement=placement, chunks=chunks)
    return one, HEURISTICS[name].order(one)


@pytest.mark.parametrize(("name", "placement", "chunks"), ORDERS)
def test_node_lists_are_read(name: str, placement: str, chunks: int, tmp_path: Path) -> None:
    one, schedule = made(name, placement, chunks)
    rows = nodes(schedule, one)
    nested, flat = tmp_path / "nested.json", tmp_path / "flat.json"
    nested.write_text(json.dumps(rows))
    flat.write_text(json.dumps([node for row in rows for node in row]))
    assert import_schedule(nested, one).orders == schedule.orders
    assert import_schedule(flat, one).orders == schedule.orders


def test_communication_is_left_out_and_pairs_are_kept(tmp_path: Path) -> None:
    one = problem(2, 2, times={"forward": 1, "backward": 2})
    path = tmp_path / "lowered.csv"
    path.write_text(
        "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,,\n"
        "1RECV_F0, 1F0 ,1RECV_F1,(1F1;1B0)OVERLAP_F_B,1SEND_B0,1B1,1SEND_B1,1RESHARD\n"
    )
    orders = import_schedule(path, one).orders
    assert [str(p) for slot in orders[0] for p in slot] == ["F0.0", "F0.1", "BW0.0", "BW0.1"]
    assert len(orders[1][1]) == 2
    assert orders[1][1][0].kind is F


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("0F0,0F1,0B0xyz,0B1\n1F0,1F1,1B0,1B1\n", "row 1, cell 3: found '0B0xyz'"),
        ("0F0,0F1,0B0\n1F0,1F1,1B0,1B1\n", "stage 0, micro-batch 1 runs F"),
        ("0F0,0F1,0B0,0B1\n", "the schedule has 1 devices"),
        ("hello\n", "found no schedule of a known format"),
        ('{"format": "pipesched-program 1"}', "programs: found no list of instructions for each device"),
        ('{"format": "pipesched-program 1", "programs": [[{"do": "X"}]]}', "programs, device 0: "),
        ('{"format": "pipesched-program 1", "programs": [[{"do": "BLOCK", "passes": 3}]]}', "programs, device 0: "),
        ("", "found no schedule of a known format"),
        ('[{"type": "X", "stage": 0, "microbatch": 0}]', "device 0, node 0: found"),
        ("[]", "found no lists of nodes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(text: str, line: str, tmp_path: Path) -> None:
    assert "program" in EXPORTERS.names()  # its reader stands beside its writer
    one = problem(2, 2, times={"forward": 1, "backward": 2})
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(BadInput) as refused:
        import_schedule(path, one)
    assert any(line in mistake for mistake in refused.value.mistakes)


def test_compare_puts_them_in_the_same_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 2}\n")
    (tmp_path / "theirs.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n")
    asked = ["compare", str(tmp_path / "p.yaml"), "--schedules", "1f1b", "--json", "--no-optimal"]
    assert main([*asked, "--with", str(tmp_path / "theirs.csv")]) == 0
    rows = {row["schedule"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert set(rows) == {"1f1b", "theirs.csv"}
    assert rows["theirs.csv"]["makespan"] == 9


@pytest.mark.parametrize(
    "text", ["0F0,0BW0,0F1,0BW1\n1F0,1BW0,1F1,1BW1\n", "0F0,0F1,0B0,0B1,0W0,0W1\n1F0,1B0,1W0,1F1,1B1,1W1\n"]
)
def test_the_letters_of_older_torch_are_said_with_what_to_do(text: str, tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"old\.csv: found old letters"):
        import_schedule(path, problem(2, 2))
    path.write_text(re.sub(r"(\d)B(\d)", r"\1I\2", text).replace("BW", "B"))
    assert import_schedule(path, problem(2, 2)).orders


SMALL = {"devices": 2, "microbatches": 2, "times": {"forward": 1, "backward": 2}}
EVERY_PASS = {"gather": {"time": 1, "memory": 1, "keep": "never"}, "reduce": {"time": 1, "every": "microbatch"}}
PARTS = {"placement": "shared", "times": {"forward": 1, "backward": 1}}
FEATURES: dict[str, dict[str, Any]] = {
    "orders of streams": {"objective": "iteration", "parameters": EVERY_PASS | {"step": {"time": 1}}},
    "modules": {"modules": {"head": PARTS | {"follows": 1, "barriers": 2}, "embedding": PARTS | {"feeds": 0}}},
    "pieces": {"sequence_chunks": 2},
    "waits": {"memory": {"capacity": 1, "activation": 1, "offload": {"out": 1, "in": 1}}, "microbatches": 3},
}


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
def test_a_schedule_file_takes_as_long_as_where_it_was_written(features: dict[str, Any], tmp_path: Path) -> None:
    one = problem_from(SMALL | features)
    found = solve(one, counted(4)).timeline
    assert found is not None
    one, path = found.problem, tmp_path / "ours.json"
    write_schedule(path, ScheduleFile(found))
    read = import_schedule(path, one)
    assert (read.orders, read.task_orders, read.name) == (found.schedule.orders, found.schedule.task_orders, "ours")
    assert measure(simulate(one, read)).makespan_ticks == measure(found).makespan_ticks


def test_every_format_is_known_where_no_exporter_is_loaded(tmp_path: Path) -> None:
    """The importer of programs stood beside their exporter, which `compare --with` does not load."""
    one = problem(2, 2)
    path = tmp_path / "one.program.json"
    path.write_text(EXPORTERS["program"].export(simulate(one, HEURISTICS["1f1b"].order(one)))[".program.json"])
    (tmp_path / "one.yaml").write_text("devices: 2\nmicrobatches: 2\ntimes: {forward: 1, backward: 1, weight: 1}\n")
    words = [
        "compare",
        str(tmp_path / "one.yaml"),
        "--no-optimal",
        "--schedules",
        "gpipe",
        "--with",
        str(path),
        "--json",
    ]
    ran = subprocess.run([sys.executable, "-m", "pipesched", *words], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {row["schedule"] for row in json.loads(ran.stdout)["rows"]} == {"gpipe", path.name}


@pytest.mark.parametrize("name", ["torch-csv", "pipesched"])
def test_compressed_files_and_files_of_spreadsheets_are_read(name: str, tmp_path: Path) -> None:
    one = problem(2, 3)
    timeline = simulate(one, HEURISTICS["1f1b"].order(one))
    text = to_text(ScheduleFile(timeline)) if name == "pipesched" else EXPORTERS[name].export(timeline)[".csv"]
    (tmp_path / "marked.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    for path in tmp_path.iterdir():
        assert import_schedule(path, one).orders == timeline.schedule.orders
