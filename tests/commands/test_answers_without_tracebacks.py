"""Problems in which features meet, each of which ended by a traceback: the answer, and the files that can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.main import main
from pipesched import plan, plan_problem_from
from pipesched.results.solution import Status
from tests.support.counted import counted

LOST = """
devices: 2
microbatches: 2
pipelines: {count: 2, lost: [[1, 1]]}
times: {forward: 2, backward: 3}
parameters: {reduce: {time: 3}, step: {time: 1}}
objective: iteration
"""


def test_a_lost_worker_and_reductions_with_an_output_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The schedule file says by `parameters.holders` that stages of one worker reduce once."""
    path, out = tmp_path / "lost.yaml", tmp_path / "out"
    path.write_text(LOST)
    assert main(["solve", str(path), "--time-limit", "60", "--workers", "1", "-o", str(out)]) == 0
    assert "optimal: iteration 29" in capsys.readouterr().out
    assert main(["check", str(out / "schedule.json")]) == 0
    assert {"gantt.png", "memory.png", "report.html", "schedule.json"} <= {one.name for one in out.iterdir()}


@pytest.mark.parametrize(("capacity", "status"), [(4, Status.INFEASIBLE), (9, Status.OPTIMAL)])
def test_a_plan_with_an_encoder_on_its_own_device_and_scarce_memory(capacity: int, status: Status) -> None:
    layer = {"forward": 2, "backward": 2, "weight": 1, "memory": 2, "activation": 1}
    first = layer | {"name": "k0", "memory": 0, "activation": 2}
    document = {
        "devices": 2, "microbatches": 2, "placement": "linear", "objective": "span", "memory": {"capacity": capacity},
        "layers": [first | {"recompute": [{"name": "full", "time": 3, "keeps": 0.25}]}, layer | {"name": "k1", "count": 2}],
        "encoder": {
            "name": "vision", "placement": "own-device", "count": 3, "serves": 2, "forward": 1, "backward": 2,
            "weight": 1, "activation": 0.5,
        },
    }  # fmt: skip
    found = plan(plan_problem_from(document), counted(2))
    assert found.status in (status, Status.FEASIBLE) if status is Status.OPTIMAL else found.status is status
    assert not any("DEFECT" in note for note in found.notes)
