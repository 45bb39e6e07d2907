"""The exporters without the programs they write for: exact text, refusals, and the CSV read back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.problem.passes import Task, parse_pass
from pipesched.problem.placement import Placement
from pipesched.problem.problem import Problem
from pipesched.schedule.schedule import Schedule
from pipesched.schedule.timeline import Timeline
from pipesched.simulation.simulator import simulate
from pipesched.version import VERSION
from runtime.exporters.catalogue import EXPORTERS
from runtime.importers.catalogue import IMPORTERS
from tests.support import makers
from tests.support.makers import schedule


def problem(devices: int = 2, microbatches: int = 2, placement: object = "linear", **times: object) -> Problem:
    times = {"forward": 2, "backward": 3, "weight": 1, "transfer": 1} | times
    return makers.problem(devices, microbatches, placement=placement, times=times)


def export(problem: Problem, schedule: Schedule) -> tuple[str, dict[str, Any]]:
    files = EXPORTERS["torch-csv"].export(simulate(problem, schedule))
    assert set(files) == {".csv", ".meta.json"}
    return files[".csv"], json.loads(files[".meta.json"])


def refusal(problem: Problem, orders: Schedule) -> str:
    with pytest.raises(BadInput) as caught:
        EXPORTERS["torch-csv"].export(simulate(problem, orders))
    assert len(caught.value.mistakes) == 1
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_registry_knows_the_formats_and_suggests_the_nearest() -> None:
    assert {"chrome-trace", "torch-csv"} <= set(EXPORTERS.names())
    with pytest.raises(BadInput, match=r"unknown export format 'torch_cvs'.*did you mean 'torch-csv'"):
        EXPORTERS["torch_cvs"]


def test_exact_text_fused_and_split() -> None:
    rows = ("F0.0 F0.1 BW0.0 B0.1 W0.1", "F1.0 B1.0 F1.1 W1.0 BW1.1")
    csv, meta = export(problem(), schedule(*rows))
    assert csv == "0F0,0F1,0B0,0I1,0W1\n1F0,1I0,1F1,1W0,1B1\n"
    notes = meta.pop("notes")
    # 10 passes, and 4 transfers of a send, a receive and an arrival each
    assert meta.pop("deadlock").startswith("free of deadlock: 22 events in ")
    assert meta == {
        "tool": f"pipesched {VERSION}",
        "format": "torch-csv",
        "torch_format": "compute_only",
        "problem": "test",
        "schedule": "by-hand",
        "devices": 2,
        "stages": 2,
        "microbatches": 2,
        "placement": "linear",
        "device_of_stage": [0, 1],
        "backward": "mixed",
        "csv_microbatch": [0, 1],
    }
    assert len(notes) == 2
    assert "stage 0" in notes[0]
    assert notes[1].startswith("On stage 0 the last backward is a W")


def test_microbatches_are_renumbered_by_the_last_stage() -> None:
    one = problem(microbatches=3)
    rows = ("F0.2 F0.0 BW0.2 F0.1 BW0.0 BW0.1", "F1.2 BW1.2 F1.0 BW1.0 F1.1 BW1.1")
    csv, meta = export(one, schedule(*rows))
    assert csv == "0F0,0F1,0B0,0F2,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n"
    assert meta["csv_microbatch"] == [1, 2, 0]


def test_a_block_is_one_cell() -> None:
    """F1.1 waits for the gradient of nothing else, so the block of stage 1 can run as one."""
    together = problem(overlapped=5)
    csv, meta = export(together, schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 F1.1&BW1.0 BW1.1"))
    assert csv.splitlines()[1] == "1F0,(1F1;1B0)OVERLAP_F_B,1B1"
    assert "register_custom_function" in meta["notes"][0]


def test_a_pair_that_runs_in_turn_is_two_cells() -> None:
    """As one cell of torch, F0.1 would leave after BW0.0, which waits for BW1.0, which stands after F1.1."""
    rows = ("F0.0 F0.1&BW0.0 BW0.1", "F1.0 F1.1 BW1.0 BW1.1")
    csv, _ = export(problem(), schedule(*rows))
    assert csv.splitlines()[0] == "0F0,0F1,0B0,0B1"
    half = problem(overlapped=5)
    csv, _ = export(half, schedule("F0.0 F0.1 B0.0 W0.0 BW0.1", "F1.0 F1.1&B1.0 W1.0 BW1.1"))
    assert csv.splitlines()[1] == "1F0,1F1,1I0,1W0,1B1"


def test_bidirectional_is_refused() -> None:
    both = problem(2, 2, "bidirectional")
    text = refusal(both, schedule("F0.0 F3.1 BW3.1 BW0.0", "F2.1 F1.0 BW1.0 BW2.1"))
    assert text == (
        "torch-csv: in a placement of 2 chains several devices hold a stage, and torch's runtime takes a stage on "
        "one device only; program can express it"
    )


IDLE = Placement("explicit", 3, (0, 2), ((0, 1),)), ("F0.0 BW0.0", "", "F1.0 BW1.0")
BACKWARDS = Placement("explicit", 2, (0, 1), ((1, 0),)), ("F0.0 BW0.0", "F1.0 BW1.0")


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (IDLE, "device 1 holds no stage, and torch's runtime needs at least one on every device; leave the device out of the problem, or use program"),
        (BACKWARDS, "micro-batches visit the stages in the order 1, 0, and torch's runtime sends from a stage to the one numbered next only; number the stages in that order, or use program"),
    ],
)  # fmt: skip
def test_a_device_without_a_stage_and_a_walk_out_of_order_are_refused(
    case: tuple[Placement, tuple[str, ...]], said: str
) -> None:
    placed, rows = case
    assert refusal(replace(problem(2, 1, [0, 1]), placement=placed, pools=()), schedule(*rows)) == f"torch-csv: {said}"


@pytest.mark.parametrize("name", ["chrome-trace", "torch-csv"])
def test_a_broken_schedule_is_refused(name: str) -> None:
    whole = simulate(problem(), schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"))
    twice = schedule("F0.0 F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1")
    with pytest.raises(BadInput, match=rf"^{name}: only a valid schedule can be exported; in this one F0\.0 runs 2 ti"):
        EXPORTERS[name].export(replace(whole, schedule=twice))
    early = Timeline(whole.problem, whole.schedule, {**whole.starts, Task(parse_pass("F1.0")): 0})
    with pytest.raises(BadInput, match=r"F1\.0 starts at 0, but F0\.0 ends at 2"):
        EXPORTERS[name].export(early)


def test_too_little_memory_does_not_stop_an_export() -> None:
    csv, _ = export(problem().with_room((1, 1)), schedule("F0.0 F0.1 BW0.0 BW0.1", "F1.0 BW1.0 F1.1 BW1.1"))
    assert csv.startswith("0F0,0F1")


def test_a_row_for_torch_2_15_waits_for_reductions_and_sends() -> None:
    timeline = simulate(problem(2, 1), schedule("F0.0 BW0.0", "F1.0 BW1.0"))
    new, old = (
        EXPORTERS["torch-csv-comms"].export(timeline, {"torch": version, "fsdp": "on"})[".comms.csv"].splitlines()
        for version in ("2.15", "2.13")
    )
    assert new == [
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD,0WAIT_SEND_F0",
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD,1WAIT_SEND_B0",
    ]
    assert [",".join(cell for cell in row.split(",") if "WAIT" not in cell) for row in new] == old
    assert read_back(new) == read_back(old)


@pytest.mark.parametrize("installed", ["2.13.0", "2.15.0"])
def test_the_form_is_that_of_the_version_said_whatever_is_installed(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: installed)
    timeline = simulate(problem(2, 1), schedule("F0.0 BW0.0", "F1.0 BW1.0"))

    def written(**options: str) -> tuple[bool, str]:
        files = EXPORTERS["torch-csv-comms"].export(timeline, options)
        return "WAIT_SEND" in files[".comms.csv"], json.loads(files[".comms.meta.json"])["notes"][0]

    old, new = (
        (False, "For torch 2.13 and 2.14; 2.15 refuses it."),
        (True, "For torch from 2.15 on; 2.14 and older refuse it."),
    )
    assert [written(), written(torch="2.14.1"), written(torch="2.13")] == [old] * 3
    assert [written(torch="2.15"), written(torch="2.15.0+cu130"), written(torch="3.0")] == [new] * 3
    assert "--option torch=VERSION" in EXPORTERS["torch-csv-comms"].warnings(timeline)[0]
    for wrong in ("2.12", "2", "main", ""):
        with pytest.raises(BadInput, match=f"^torch-csv-comms: found torch={wrong}; allowed: 2.13 or a later"):
            written(torch=wrong)


def read_back(rows: list[str]) -> object:
    text = "\n".join(rows) + "\n"
    (importer,) = (found for found in IMPORTERS if found.recognises(text))
    return importer.read(text)
