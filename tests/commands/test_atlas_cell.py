"""The cell of the atlas that `solve` names: the nearest one, and none for problems that the atlas has not."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.atlas.__main__ import ROWS
from benchmarks.atlas.grid import RATIOS
from benchmarks.atlas.page import packaged
from benchmarks.atlas.row import read_rows
from commands.main import main
from commands.reports.solved.atlas import _RATIOS, TABLE, Cell, cells, nearest_cell
from pipesched.files.problem_file import problem_from
from pipesched.problem.problem import Problem
from tests.support.daily import daily
from tests.support.in_turn import in_turn

DOCUMENT = {
    "devices": 4, "microbatches": 4, "placement": "v-shape", "times": {"forward": 10, "backward": 10, "weight": 10, "transfer": 1},
    "memory": {"capacity": 8, "activation": 1},
}  # fmt: skip


def problem(**changes: object) -> Problem:
    return problem_from(DOCUMENT | changes, "test")


def at(cell: Cell | None) -> tuple[int, int, float, str, float] | None:
    return None if cell is None else cell[:5]


def test_every_cell_is_nearest_to_a_problem_with_just_its_numbers() -> None:
    """An eighth of them, another one every day."""
    for cell in daily(cells(), 8):
        forward, backward, weight = RATIOS[cell.times]
        times = {"forward": forward, "backward": backward, "transfer": int(cell.transfer * 20)}
        own = problem_from(
            {
                "devices": cell.devices, "microbatches": cell.devices * cell.length,
                "times": times | ({"weight": weight} if weight else {}),
                "memory": {"capacity": int(cell.memory * cell.devices * 4), "activation": 4},
            },
            "test",
        )  # fmt: skip
        assert nearest_cell(own) == cell


def test_chunks_are_added_up_to_devices() -> None:
    """Two stages of 10 on a device are an F of 20, of which a transfer of 1 is a twentieth."""
    assert at(nearest_cell(problem())) == (4, 1, 1.0, "1:1:1", 0.05)
    assert at(nearest_cell(problem(placement="interleaved", chunks=2))) == (4, 1, 1.0, "1:1:1", 0.05)
    assert at(nearest_cell(problem(memory={"capacity": 2, "activation": 1}))) == (4, 1, 0.25, "1:1:1", 0.05)
    assert at(nearest_cell(problem(memory={"activation": 1}))) == (4, 1, 2.0, "1:1:1", 0.05)
    assert at(nearest_cell(problem(devices=5, microbatches=6))) == (4, 1, 0.75, "1:1:1", 0.05)


@in_turn(
    "changes",
    [
        {"devices": 64, "microbatches": 64},
        {"microbatches": 400},
        {"objective": "span"},
        {"objective": "period"},
        {"placement": "bidirectional"},
        {"placement": [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]},
        {"memory": {"capacity": 1, "activation": 1}},
        {"memory": {"capacity": 0, "activation": 1}},
        {"memory": {"capacity": 8, "activation": 1, "static": 9}},
        {"memory": {"capacity": 8, "activation": 0}},
        {"times": {"forward": 0, "backward": 10, "weight": 10}},
        {"times": {"forward": 0, "backward": 0, "weight": 0}},
        {"memory": {"capacity": 9, "activation": [1, 1, 1, 1, 1, 1, 1, 2]}},
        {"memory": {"capacity": 9, "activation": 1, "workspace": {"forward": 1}}},
        {"memory": {"capacity": 9, "activation": 1, "offload": {"out": 1, "in": 1}}},
        {"times": {"forward": [10, 10, 10, 10, 10, 10, 10, 17], "backward": 10, "weight": 10}},
        {"times": {"forward": 10, "backward": 10, "weight": 10, "transfer": 7}},
        {"times": {"forward": 10, "backward": 30, "weight": 10}},
        {"times": {"forward": 10, "backward": 10, "weight": 10, "fused": 15}},
        {"times": {"forward": 10, "backward": 10, "weight": 10, "overlapped": 25}},
        {"microbatch_scale": [1, 1, 1, 2]},
        {"sequence_chunks": 2, "placement": "linear"},
    ],
)
def test_what_the_atlas_has_not_has_no_cell(changes: dict[str, object]) -> None:
    assert nearest_cell(problem(**changes)) is None


def test_what_is_said_of_a_cell() -> None:
    base = Cell(8, 4, 1.0, "1:1:1", 0.0, "zbv", "v-shape", 1020, "v-shape", 1000, 1000)
    assert str(base).endswith("zbv on v-shape is the best published schedule, 2.00 % above the optimum (v-shape)")
    assert str(base._replace(lower_bound=850)).endswith("2.00 % to 20.00 % above the optimum")
    assert str(base._replace(published=1000)).endswith("is the best published schedule, and optimal")
    none = base._replace(schedule=None, placement=None, published=None, placements="v-shape/interleaved x2")
    assert str(none).endswith("no published schedule fits; the best order is on v-shape and interleaved x2")


def test_the_packaged_table_is_that_of_the_rows() -> None:
    assert TABLE.read_text(encoding="utf-8") == packaged([*read_rows(ROWS).values()])
    shares = {name: (b / f, w / f if w else None) for name, (f, b, w) in RATIOS.items()}
    assert shares == _RATIOS


def test_solve_names_the_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "problem.yaml"
    file.write_text(
        "devices: 4\nmicrobatches: 4\ntimes: {forward: 1, backward: 1, weight: 1}\nmemory: {capacity: 4, activation: 1}\n"
    )
    assert main(["solve", str(file), "--time-limit", "20"]) == 0
    cell = next(one for one in cells() if one[:5] == (4, 1, 1.0, "1:1:1", 0.0))
    assert f"; {cell}\n" in capsys.readouterr().out
    assert Fraction(cell.published or 0, cell.value) >= 1
