"""`layouts`: from published configurations and a number of GPUs to the best layout, its plan file and flags."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.files.plan_file import read_plan
from pipesched.results.layouts import NO_FIRST_PLAN
from targets.layout_race import LayoutParams
from tests.support.daily import daily
from tests.support.published_models import PUBLISHED

# Every layout is looked at and the best is searched.
pytestmark = pytest.mark.usefixtures("no_shared_time_is_spent")

MODELS = {"dense": "Llama 3.1 8B", "experts": "Qwen3 30B-A3B", "latent": "DeepSeek-V2-Lite"}
SIZES = ("tensor", "context", "pipeline", "data", "expert", "microbatch_size")
WORDS = ["--gpus", "8", "--microbatches", "8", "--hardware", "h100-80gb", "--for", "megatron", "--workers", "1"]


def source(kind: str, folder: Path) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(PUBLISHED[MODELS[kind]][0]))
    return path


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main([*words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.usefixtures("pictures_are_empty")
@pytest.mark.parametrize("kind", daily([*MODELS], 3))
def test_from_a_configuration_to_the_plan_of_the_best_layout(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["layouts", str(source(kind, tmp_path)), *WORDS, "--time-limit", "0.2", "-o", str(out)]
    found = answer(words, capsys)
    rows = found["rows"]
    sizes = [[row[name] for name in ("tensor", "context", "pipeline", "data")] for row in rows]
    assert all(t * c * p * d == 8 for t, c, p, d in sizes)
    assert all(row["microbatches"] * row["data"] == 8 for row in rows)
    assert {row["expert"] for row in rows} == ({1} if kind == "dense" else {1, 2, 4, 8})
    with_plan = [row for row in rows if row["fits"]]
    best = with_plan[0]
    steps = [row["step"]["total"] for row in with_plan]
    assert steps == sorted(steps) and best["searched"] == "exact"
    assert {row["searched"] for row in with_plan} <= {"exact", "first plan"}
    for row in with_plan:
        step = row["step"]
        assert step["total"] == pytest.approx(step["pipeline"] + step["exchange"] + step["optimizer"])
        assert row["lower_bound"] <= row["step_lower_bound"] <= step["total"]
        assert row["lower_bound"] <= row["pipeline_time"] == step["pipeline"]
        assert max(row["peak_memory"]) <= row["assumed"]["memory"] - row["assumed"]["reserved"]
        assert row["tokens_per_second"] == pytest.approx(8 * 4096 / (step["total"] / 1000))
        assert 0 < row["mfu"] < 0.5  # large products reach half of the peak
    least = min(row["step_lower_bound"] for row in with_plan)
    assert min(row["step_lower_bound"] for row in rows) <= found["step_lower_bound"] <= least
    for row in rows[len(with_plan) :]:
        assert row["reason"] == NO_FIRST_PLAN or "alone take" in row["reason"]
    chosen = next(row for row in rows if all(row[name] == size for name, size in found["recommended"].items()))
    assert chosen["equal"] and chosen["step"]["total"] <= 1.02 * steps[0]
    plan = read_plan(out / "model.yaml")
    assert plan.step is not None and plan.step.parallel.tensor == chosen["tensor"]
    assert (plan.cluster.devices, plan.microbatches) == (chosen["pipeline"], chosen["microbatches"])
    assert found["best"]["value"] == chosen["pipeline_time"]
    for key in ("step", "assumed", "expected_error"):
        assert found["best"][key] == chosen[key]
    assert not chosen["reason"] and chosen["expected_error"]["kind"] == (
        "H100 " + ("dense" if kind == "dense" else "MoE")
    )
    assert "megatron-layout" in found["best"]["settings"] and (out / "partition.megatron.args").is_file()
    assert {Path(path).name for path in found["files"]} >= {"model.yaml", "plan.json", "report.html", "layouts.csv"}
    with (out / "layouts.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [line["tensor"] for line in lines] == [str(row["tensor"]) for row in rows]
    assert [float(line["step_total"]) for line in lines[: len(steps)]] == steps
    page = (out / "report.html").read_text()
    assert "Layouts side by side" in page and "8 x h100-80gb, 8 sequences of 4096 tokens a step" in page
    verdict = re.search("<p class=verdict[^>]*>([^<]*)", page)
    assert verdict is not None and verdict[1].startswith("Recommended layout: TP")


def test_the_table_says_what_fits_what_a_step_is_and_what_was_not_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["layouts", str(source("dense", tmp_path)), *WORDS, "--time-limit", "0.2", "--data", "2"]
    assert main(words) == 0
    told = capsys.readouterr()
    said = told.out
    assert re.match("recommended layout: TP.*no layout that megatron runs has a s", said)
    assert "step: the pipeline from its first forward to its last backward, then what no pass hides" in said
    assert re.search(r"assumed of h100-80gb: sustained_tflops [\d.]+, ", said)
    assert re.search(
        r"expected error: [\d.]+ % of a step, the mean over \d+ published measurements of H100 dense", said
    )
    assert "layouts marked first plan: the best of the runtime's own orders" in said
    assert "a step takes " in said and "megatron-layout: " in said
    assert "DP1" not in said and "DP4" not in said
    assert re.search(r"layout (\d+) of \1, best [\d.]+ ms", told.err)


@pytest.mark.usefixtures("pictures_are_empty")
def test_rates_of_a_plan_file_and_a_device_of_which_few_steps_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of such a device the error is the largest known; `plan` says the same of the plan file."""
    out = tmp_path / "out"
    words = ["layouts", str(source("experts", tmp_path)), "--gpus", "8", "--batch", "16", "--hardware", "h200-141gb",
             "--workers", "1", "--data", "8", "--tensor", "1", "--microbatch-size", "1"]  # fmt: skip
    given = ["--rate", "dispatch=expert", "--rate", "hidden_share=30%", "--rate", "reserved=4"]
    found = answer([*words, *given, "--time-limit", "0.2", "-o", str(out)], capsys)
    own = found["rows"][0]["assumed"]
    assert (own["dispatch"], own["hidden_share"], own["reserved"]) == ("expert", 0.3, 4)
    assert all(isinstance(value, float) for key, value in own.items() if key != "dispatch")
    assert found["rows"][0]["expected_error"] == {
        "kind": "B200 MoE",
        "mean": 0.114,
        "rows": 7,
        "ratio": 0.097,
        "pairs": 1444,
    }
    assert main([*words, "--time-limit", "0.2"]) == 0
    assert "B200 MoE (docs/results/accuracy.md); too few of h200-141gb are known" in capsys.readouterr().out
    again = answer(["plan", str(out / "model.yaml"), "--time-limit", "0.2", "--workers", "1"], capsys)
    assert again["assumed"] == own and again["expected_error"] == found["rows"][0]["expected_error"]
    assert again["step"]["total"] <= found["best"]["step"]["total"]


def test_sizes_of_a_micro_batch_for_a_fixed_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["layouts", str(source("dense", tmp_path)), "--gpus", "8", "--hardware", "h100-80gb", "--workers", "1"]
    found = answer([*words, "--batch", "16", "--tensor", "2", "--time-limit", "0.2"], capsys)
    rows = found["rows"]
    assert found["sequences"] == 16 and {row["microbatch_size"] for row in rows} == {1, 2, 4}
    assert all(row["microbatches"] * row["data"] * row["microbatch_size"] == 16 for row in rows)
    best = {
        size: min(row["step"]["total"] for row in rows if row["fits"] and row["microbatch_size"] == size)
        for size in (1, 2, 4)
    }
    least = min(best.values())
    assert found["by_microbatch_size"] == pytest.approx({str(size): step / least - 1 for size, step in best.items()})
    assert main([*words, "--batch", "16", "--microbatch-size", "2", "--tensor", "2", "--time-limit", "0.2"]) == 0
    assert "8 x h100-80gb, 16 sequences of 4096 tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch", "16", "--microbatches", "16"], "--batch, --microbatches: found both; allowed: one of them"),
        (["--microbatches", "16", "--microbatch-size", "1,2"], "--microbatch-size: found 1, 2; allowed: several with"),
        (["--batch", "9", "--microbatch-size", "2,4"], "--microbatch-size: found 2, 4; allowed: divisors of the 9"),
        ([], "--batch, --microbatches: found neither; allowed: one of them"),
        (
            ["--batch", "16", "--dtype", "nvfp4"],
            "dtype: found nvfp4, of which h100-80gb has no products; allowed: bf16",
        ),
        (["--batch", "16", "--rate", "dispatch=both"], "hardware.dispatch: found 'both'; allowed: node, expert"),
    ],
)
def test_what_a_batch_may_not_be(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layouts", str(source("dense", tmp_path)), "--gpus", "8", "--hardware", "h100-80gb", *words]) == 2
    assert said in capsys.readouterr().err


def test_nothing_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(PUBLISHED["Llama 3.1 405B"][0]))
    assert main(["layouts", str(path), *WORDS, "--time-limit", "0.2"]) == 3
    told = capsys.readouterr()
    assert re.search("^[0-9]+ cannot fit the memory: .*TP1 PP1 DP8", told.out, re.MULTILINE)
    assert "step (ms)" not in told.out
    assert re.search(
        r"no layout fits the memory: .* alone take \d+\.\d of 72\.\d+ GiB a device, spread as TP.* at least \d+ GPUs",
        told.err,
    )


def test_a_layout_that_was_not_looked_at_has_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["layouts", str(source("dense", tmp_path)), *WORDS, "--time-limit", "0.2"]
    every = {tuple(row[name] for name in SIZES) for row in answer(words, capsys)["rows"]}
    monkeypatch.setattr("targets.layout_race._PARAMS", LayoutParams(first_share=0.1))
    found = answer(words, capsys)
    assert {tuple(row[name] for name in SIZES) for row in found["rows"]} == every and found["step_lower_bound"] is None
    missed = [row for row in found["rows"] if row["lower_bound"] is None]
    assert len(missed) == len(found["refused"]) > 0
    assert all("no time was left" in row["reason"] and not row["fits"] and row["microbatches"] for row in missed)
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"{len(missed)} not tried: no time was left" in said
