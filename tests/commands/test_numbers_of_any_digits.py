"""Numbers of 1 to 17 digits and of any size that a file may have: every answer is valid, and no part fails.

`NUMBERS=500 pytest tests/commands/test_numbers_of_any_digits.py` draws more problems.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commands.main import main

DRAWN = int(os.environ.get("NUMBERS", "8"))
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
    time, size = 10.0 ** random.randint(-6, 11), 10.0 ** random.randint(-6, 11)
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


@pytest.mark.parametrize("seed", range(DRAWN))
def test_every_command_answers(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "drawn.json", tmp_path / "out"
    path.write_text(json.dumps(drawn(seed)))
    assert main(["solve", str(path), "--time-limit", "1", "--workers", "1", "-o", str(out), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["status"] in ("optimal", "feasible") and answer["lower_bound"] <= answer["value"] * (1 + 1e-12)
    assert not any("DEFECT" in note for note in answer["notes"])
    assert main(["check", str(out / "schedule.json")]) == 0
    assert main(["validate", str(out / "schedule.json")]) == 0
    assert main(["compare", str(path), "--time-limit", "0.5", "--workers", "1", "--json"]) == 0
    told = capsys.readouterr()
    assert "DEFECT" not in told.out + told.err
