"""What is said of memory that never limits: only where no schedule, valid or not, can hold more."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.main import main
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.ample_memory import why_no_plan_is_limited
from pipesched.problem.relaxed.ample_memory import NEVER_LIMITS, why_never_limited
from pipesched.schedule.metrics import measure
from pipesched.simulation.simulator import simulate
from tests.support.makers import problem, random_order

TIMES: dict[str, Any] = {"forward": 1, "backward": 1, "weight": 1}


@pytest.mark.parametrize("freed", [0, 1, -1])
def test_no_order_holds_more_than_is_said(freed: int) -> None:
    least = 4 * (2 + max(0, -freed))
    for capacity in (least - 1, least):
        memory = {"capacity": capacity, "activation": 2, "freed_by_backward": freed}
        one = problem(2, 4, times=TIMES, memory=memory)
        assert (why_never_limited(one) is None) is (capacity < least)
    for seed in range(10):
        timeline = simulate(one, random_order(one, Random(seed)))
        assert max(measure(timeline).peak_quanta) * one.resolution <= least


def test_static_memory_and_unequal_micro_batches_count() -> None:
    memory = {"capacity": 20, "activation": 2, "static": 10, "unit": "GiB"}
    assert why_never_limited(problem(1, 4, times=TIMES, memory=memory)) is not None
    assert why_never_limited(problem(1, 6, times=TIMES, memory=memory)) is None
    assert why_never_limited(problem(1, 4, times=TIMES, memory=memory, microbatch_scale=[1, 2, 2, 2])) is None
    assert why_never_limited(problem(1, 4, times=TIMES)) is None  # without a limit there is nothing to say


def test_a_plan_is_told_too() -> None:
    layers = [{"name": "a", "count": 4, "forward": 1, "backward": 1, "activation": 1.21, "memory": 1}]
    for capacity, said in ((80000, True), (20, False)):
        one = plan_problem_from({"devices": 2, "microbatches": 8, "layers": layers, "memory": {"capacity": capacity}})
        assert (why_no_plan_is_limited(one) is not None) is said


@pytest.mark.usefixtures("pictures_are_empty")
def test_the_answer_and_the_report_say_so(tmp_path: Path, capsys: Any) -> None:
    memory = {"unit": "GiB", "capacity": 80000, "activation": 1.21}
    layers = [{"name": "a", "count": 4, "forward": 1, "backward": 1, "activation": 1.21}]
    files = {
        "solve": {"devices": 2, "microbatches": 4, "times": TIMES, "memory": memory},
        "plan": {"devices": 2, "microbatches": 4, "layers": layers, "memory": {"capacity": 80000}},
    }
    for command, document in files.items():
        path, out = tmp_path / f"{command}.json", tmp_path / command
        path.write_text(json.dumps(document))
        assert main([command, str(path), "-o", str(out), "--time-limit", "2", "--workers", "1"]) == 0
        assert f"note: {NEVER_LIMITS}" in capsys.readouterr().out
        assert NEVER_LIMITS in (out / "report.html").read_text()
        assert main([command, str(path), "--json", "--time-limit", "2", "--workers", "1"]) == 0
        assert any(NEVER_LIMITS in one for one in json.loads(capsys.readouterr().out)["notes"])
