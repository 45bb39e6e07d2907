"""`layouts`: from published configurations and a number of GPUs to the best layout, its plan file and flags."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.files.plan_file import read_plan
from solver.planning.race import NO_TIME
from tests.support.published_models import PUBLISHED

MODELS = {"dense": "Llama 3.1 8B", "experts": "Qwen3 30B-A3B", "latent": "DeepSeek-V2-Lite"}
WORDS = ["--gpus", "8", "--microbatches", "16", "--hardware", "h100-80gb", "--for", "megatron", "--workers", "1"]


def source(kind: str, folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(PUBLISHED[MODELS[kind]][0]))
    return path


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("kind", MODELS)
def test_from_a_configuration_to_the_plan_of_the_best_layout(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["layouts", str(source(kind, tmp_path)), *WORDS, "--time-limit", "1", "-o", str(out)]
    found = answer(words, capsys)
    rows = found["rows"]
    sizes = [[row[name] for name in ("tensor", "context", "pipeline", "data")] for row in rows]
    assert all(t * c * p * d == 8 for t, c, p, d in sizes)
    assert all(row["microbatches"] * row["data"] == 16 for row in rows)
    assert {row["expert"] for row in rows} == ({1} if kind == "dense" else {1, 2, 4, 8})
    with_plan = [row for row in rows if row["fits"]]
    best = with_plan[0]
    assert [row["step"] for row in with_plan] == sorted(row["step"] for row in with_plan)
    for row in with_plan:
        assert row["lower_bound"] <= row["step_lower_bound"] <= row["step"]
        assert row["lower_bound"] <= row["pipeline_time"] <= row["step"] and max(row["peak_memory"]) <= 74
        assert row["tokens_per_second"] == pytest.approx(16 * 4096 / (row["step"] / 1000))
        assert 0 < row["mfu"] < 0.5  # large products reach half of the peak
    least = min(row["step_lower_bound"] for row in with_plan)
    assert min(row["step_lower_bound"] for row in rows) <= found["step_lower_bound"] <= least
    for row in rows[len(with_plan) :]:
        assert (
            row["reason"] in ("", NO_TIME) or "alone take" in row["reason"] or row["step_lower_bound"] >= best["step"]
        )
    plan = read_plan(out / "model.yaml")
    assert plan.step is not None and plan.step.parallel.tensor == best["tensor"]
    assert (plan.cluster.devices, plan.microbatches) == (best["pipeline"], best["microbatches"])
    assert found["best"]["value"] == best["pipeline_time"]
    assert "megatron-layout" in found["best"]["settings"] and (out / "partition.megatron.args").is_file()
    assert {Path(path).name for path in found["files"]} >= {"model.yaml", "plan.json", "report.html"}


def test_the_table_says_what_fits_what_a_step_is_and_what_was_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["layouts", str(source("dense", tmp_path)), *WORDS, "--time-limit", "1", "--data", "2"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert re.match("best layout( of those tried)?: TP.*no layout that megatron runs has a s", said)
    assert "step: the pipeline from its first forward to its last backward, then gradients" in said
    assert "a step takes " in said and "megatron-layout: " in said
    assert "DP1" not in said and "DP4" not in said


def test_nothing_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED["Llama 3.1 405B"][0]))
    assert main(["layouts", str(path), *WORDS, "--time-limit", "1"]) == 3
    told = capsys.readouterr()
    assert re.search("^[0-9]+ do not fit the memory: .*TP1 PP1 DP8", told.out, re.MULTILINE)
    assert "step (ms)" not in told.out
    assert re.search(
        r"no layout fits the memory: .* alone take \d+\.\d of 73\.\d+ GiB a device, spread as TP", told.err
    )
