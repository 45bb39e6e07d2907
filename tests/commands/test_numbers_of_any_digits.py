"""Numbers of 1 to 17 digits and of any size that a file may have: every answer is valid, and no part fails.

Others are drawn every day. `NUMBERS=500 pytest tests/commands/test_numbers_of_any_digits.py` draws more of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.matrix.commands_of import faults_of, of_problem, of_schedule
from commands.main import main
from commands.shared.catalogue import Exit
from tests.support.daily import DAY

pytestmark = pytest.mark.usefixtures("pictures_are_empty")

DRAWN = int(os.environ.get("NUMBERS", "1"))
SEEDS = range(DAY, DAY + DRAWN)
PLACEMENTS: tuple[dict[str, Any], ...] = (
    {"placement": "linear"}, {"placement": "interleaved", "chunks": 2}, {"placement": "v-shape"},
    {"placement": "wave", "chunks": 2}, {"placement": "bidirectional"}, {"placement": [0, 1, 1, 0]},
)  # fmt: skip


def number(random: Random, largest: float) -> float:
    """Of so many digits, between a billionth of the largest and that."""
    size = largest * 10 ** -random.choice((0, 0, 0, 0, 0, 1, 3, 9)) * random.uniform(0.3, 1)
    return float(f"{size:.{random.randint(0, 16)}e}")


def drawn(seed: int) -> dict[str, Any]:
    random = Random(seed)
    time, size = 10.0 ** random.randint(-6, 12), 10.0 ** random.randint(-6, 11)
    where = PLACEMENTS[seed % len(PLACEMENTS)]
    stages = 2 if where["placement"] in ("linear", "bidirectional") else 4
    activation = [number(random, size) for _ in range(stages)]
    times: dict[str, Any] = {
        key: [number(random, time) for _ in range(stages)] for key in ("forward", "backward", "weight")
    }
    if random.randrange(2):
        times["transfer"] = number(random, time / 10)
    memory = {"activation": activation, "capacity": float(f"{sum(activation) * random.uniform(1.05, 3):.16e}")}
    if random.randrange(2):
        memory["freed_by_backward"] = [0.31234567890123456 * one for one in activation]
    objective = random.choice(("makespan", "span"))
    found = {"devices": 2, "microbatches": random.choice((2, 4, 6)), "times": times, "memory": memory, **where}
    return found | {"objective": objective}


@pytest.mark.usefixtures("cells_in_turn")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_command_answers(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "drawn.json", tmp_path / "out"
    path.write_text(json.dumps(drawn(seed)))
    assert main(["solve", str(path), "--time-limit", "0.3", "--workers", "1", "-o", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] in ("optimal", "feasible") and answer["lower_bound"] <= answer["value"] * (1 + 1e-12)
    assert not any("DEFECT" in note for note in answer["notes"])
    assert main(["check", str(out / "schedule.json")]) == 0
    assert main(["validate", str(out / "schedule.json")]) == 0
    assert main(["compare", str(path), "--time-limit", "0.2", "--workers", "1", "--json"]) == 0
    told = capsys.readouterr()
    assert "DEFECT" not in told.out + told.err
    others = [*of_problem(path, out / "schedule.json", tmp_path, 0.2)]
    assert not faults_of(others)


def test_a_full_backward_may_take_more_than_a_number_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {"forward": 9e11, "backward": [5.5e11, 9e11], "weight": 7e11}
    path, out = tmp_path / "largest.json", tmp_path / "out"
    path.write_text(json.dumps({"devices": 2, "microbatches": 2, "times": times}))
    assert main(["solve", str(path), "--time-limit", "0.3", "--workers", "1", "-o", str(out)]) == 0
    assert main(["check", str(out / "schedule.json")]) == 0, capsys.readouterr().err
    assert "fused" not in json.loads((out / "schedule.json").read_text())["problem"]["times"]


def plan_drawn(seed: int) -> dict[str, Any]:
    """A plan of a few layers, with numbers of any digits."""
    random = Random(seed)
    time, size = 10.0 ** random.randint(-6, 10), 10.0 ** random.randint(-6, 10)
    layers = [
        {"name": name, "count": count, "forward": number(random, time), "backward": number(random, time),
         "activation": number(random, size), "memory": number(random, size)}
        for name, count in (("embedding", 1), ("block", 3), ("head", 1))
    ]  # fmt: skip
    found = {
        "devices": 2,
        "microbatches": random.choice((2, 3)),
        "layers": layers,
        "transfer": number(random, time / 10),
    }
    capacity = float(f"{size * random.uniform(9, 30):.16e}")
    return found | ({"memory": {"capacity": capacity}} if random.randrange(2) else {"sequence_chunks": [1, 2]})


@pytest.mark.parametrize("seed", SEEDS[::2])
def test_every_command_answers_of_plans(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "plan.json", tmp_path / "out"
    path.write_text(json.dumps(plan_drawn(seed)))
    limits = ("--time-limit", "0.5", "--workers", "1")
    assert main(["plan", str(path), "-o", str(out), "--json", *limits]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] in ("optimal", "feasible")
    for words in (("check", out / "plan.json"), ("validate", out / "schedule.json"), ("check", out / "schedule.json"),
                  ("layers", path, "--json"), ("compare", path, "--json", "--schedules", "1f1b,gpipe", *limits),
                  ("sweep", path, "--set", "microbatches=2,3", "--workers", "1", "--jobs", "1", "--total-time", "0.6", "--store", tmp_path / "sweep.sqlite")):  # fmt: skip
        assert main(list(map(str, words))) == 0, words
    assert not faults_of([*of_schedule(str(out / "schedule.json"), tmp_path)])
    told = capsys.readouterr()
    assert "DEFECT" not in told.out + told.err


@pytest.mark.parametrize("seed", SEEDS)
def test_unequal_microbatches_of_many_digits(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = Random(seed)
    count = random.choice((2, 3, 4))
    scale = [float(f"{random.uniform(0.1, 2):.{random.randint(0, 16)}e}") for _ in range(count)]
    times = {key: [number(random, 10) for _ in range(2)] for key in ("forward", "backward")}
    document = {"devices": 2, "microbatches": count, "times": times, "microbatch_scale": scale}
    path, out = tmp_path / "drawn.json", tmp_path / "out"
    path.write_text(json.dumps(document))
    code = main(["solve", str(path), "--time-limit", "0.3", "--workers", "1", "-o", str(out), "--json"])
    told = capsys.readouterr()
    assert "DEFECT" not in told.out + told.err
    if code == Exit.BAD_INPUT:
        assert "microbatch_scale" in told.err
        return
    assert json.loads(told.out)["status"] in ("optimal", "feasible")
    assert main(["check", str(out / "schedule.json")]) == main(["validate", str(out / "schedule.json")]) == 0
