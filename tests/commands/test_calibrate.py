"""`calibrate`: from measured steps, passes or layers to a hardware file that `layouts` reads."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.measured.table import CONFIGS
from commands.main import main
from heuristics.catalogue import HEURISTICS
from pipesched.files.layers_text import layers_text
from pipesched.files.model_configs.hardware_file import find_device
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.plan_of_config import Wanted
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.problem_file import problem_from
from pipesched.files.problem_text import problem_text
from pipesched.layers.derived.data_links import ByNodes
from pipesched.layers.measured_step import MeasuredStep
from pipesched.problem.passes import BW, F, Pass
from pipesched.simulation.simulator import simulate
from solver.calibration.predicted_step import plan_of, predicted_seconds, problem_of
from tests.support.traces import write_kineto

CONFIG = CONFIGS / "llama3-8b.json"
H100 = DEVICES["h100-80gb"]
REACHED = round(0.85 * H100.products, 3)
TRUE = Wanted(1, 1, "h100-80gb", replace(H100, products=REACHED))
SIZES = (("tensor", 2), ("context", 1), ("expert", 1), ("data", 1))
STEP = MeasuredStep("", 0, SIZES, 2, 1, 1, 8)


def steps_file(folder: Path, *heads: str) -> Path:
    """Three steps of a device whose products reach less than the table says."""
    steps = [replace(STEP, microbatches=m, pipeline=p) for m, p in ((8, 2), (16, 4), (4, 1))]
    config, path = read_config(str(CONFIG)), folder / "steps.yaml"
    lines = [
        f"  - {{tensor: 2, pipeline: {one.pipeline}, microbatches: {one.microbatches}, "
        f"seconds: {predicted_seconds(one, plan_of(one, config, TRUE)):.4f}}}"
        for one in steps
    ]
    path.write_text("\n".join([*heads, "steps:", *lines]) + "\n")
    return path


@pytest.mark.usefixtures("no_shared_time_is_spent")
def test_from_steps_to_a_hardware_file_that_layouts_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(CONFIG.read_text())
    steps = steps_file(tmp_path, "config: config.json", "hardware: h100-80gb")
    mine = tmp_path / "mine.yaml"
    assert main(["calibrate", str(steps), "-o", str(mine)]) == 0
    said = capsys.readouterr()
    assert "rates of h100-80gb from 3 measured durations" in said.out and "steps[2]" in said.out
    assert f"wrote {mine}" in said.out and "attention" in said.err and "hardly seen" in said.err
    text = mine.read_text()
    assert "# fitted, ± " in text and f"{H100.products:g} of h100-80gb" in text
    assert "# of h100-80gb: no measured duration depends on it" in text
    name, device = find_device(str(mine))
    assert name == "h100-80gb-calibrated" and device.products == pytest.approx(REACHED, rel=0.04)
    assert replace(device, source="") != replace(H100, source="")
    words = ["layouts", str(CONFIG), "--gpus", "4", "--microbatches", "8", "--hardware", str(mine), "--json"]
    assert main([*words, "--time-limit", "0.1", "--workers", "1"]) == 0
    best = json.loads(capsys.readouterr().out)["rows"][0]
    assert best["assumed"]["sustained_tflops"] == pytest.approx(989 * device.products, rel=1e-3)


@pytest.mark.parametrize("name", ["steps.csv", "steps.yaml"])
def test_measured_files_may_be_compressed(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "microbatches,pipeline,data,seconds\n8,2,1,2\n" if name.endswith("csv") else steps_file(tmp_path).read_text()
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    words = ["--hardware", "h100-80gb", "--config", str(CONFIG)]
    assert main(["calibrate", str(tmp_path / f"{name}.gz"), *words]) == 0
    assert "measured duration" in capsys.readouterr().out


def test_a_bandwidth_by_nodes_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps, mine = steps_file(tmp_path), tmp_path / "mine.yaml"
    words = ["calibrate", str(steps), "--hardware", "h100-80gb", "--config", str(CONFIG), "-o", str(mine)]
    assert main([*words, "--rate", "data_bandwidth={1: 436, 4: 160}"]) == 0
    assert "\ndata_bandwidth: {1: 436, 4: 160}\n" in mine.read_text()
    assert find_device(str(mine)).device.data_bandwidth == ByNodes(((1, 436), (4, 160)))


@pytest.mark.parametrize(("times", "code"), [(3.6, 1), (1 / 3.6, 1), (1.0, 0)])
def test_durations_that_no_likely_rates_explain(
    times: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = steps_file(tmp_path)
    text = re.sub(r"seconds: ([0-9.]+)", lambda found: f"seconds: {float(found[1]) * times:.5f}", steps.read_text())
    steps.write_text(text)
    words = ["calibrate", str(steps), "--hardware", "h100-80gb", "--config", str(CONFIG), "--json"]
    assert main(words) == code
    said = capsys.readouterr()
    assert json.loads(said.out)["explained"] is (code == 0)
    assert said.err.count("warning: the measured durations are") == code


def test_options_say_what_the_file_does_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_file(tmp_path)
    assert main(["calibrate", str(steps), "--json"]) == 2
    assert "--hardware: missing" in capsys.readouterr().err
    assert main(["calibrate", str(steps), "--hardware", "h100-80gb"]) == 2
    assert "--config: missing" in capsys.readouterr().err
    words = ["calibrate", str(steps), "--hardware", "h100-80gb", "--config", str(CONFIG), "--json"]
    assert main([*words, "--rate", f"products={REACHED + 0.01:.3f}"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["rates"]["products"]["before"] == pytest.approx(REACHED + 0.01) and found["files"] == []
    assert found["rates"]["products"]["value"] == pytest.approx(REACHED, rel=0.02)
    assert found["rates"]["moe_launch"]["error"] is None and len(found["durations"]) == 3
    assert found["mean_error"]["after"] <= found["mean_error"]["before"] < 0.05
    assert main([*words, "--mfu", "0.4"]) == 0
    assert json.loads(capsys.readouterr().out)["rates"]["products"]["before"] == 0.4


def test_what_profile_wrote_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = read_config(str(CONFIG))
    problem, plan = tmp_path / "problem.yaml", tmp_path / "plan.yaml"
    problem.write_text(problem_text(problem_of(STEP, plan_of(STEP, config, TRUE))))
    layers = layers_text(plan_of(STEP, config, TRUE).model.layers)
    plan.write_text(f"devices: 1\nmicrobatches: 1\ntime_unit: ms\n{layers}")
    words = ["--hardware", "h100-80gb", "--config", str(CONFIG), "--tensor", "2", "--json"]
    for path in (problem, plan):
        assert main(["calibrate", str(path), *words]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["rates"]["products"]["value"] == pytest.approx(REACHED, rel=0.04)
        assert len(found["durations"]) == 4


def test_traces_of_a_run_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = read_config(str(CONFIG))
    ran = problem_of(STEP, plan_of(STEP, config, TRUE))
    times = {name: [round(ran.duration(Pass(kind, stage, 0)) * ran.tick) for stage in (0, 1)]
             for name, kind in (("forward", F), ("backward", BW))}  # fmt: skip
    problem = problem_from({"devices": 2, "microbatches": 8, "placement": "linear", "times": times})
    traces = write_kineto(simulate(problem, HEURISTICS["1f1b"].order(problem)), tmp_path)
    words = ["calibrate", *map(str, traces), "--hardware", "h100-80gb", "--config", str(CONFIG), "--tensor", "2"]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    seconds = [times[name][stage] / 1000 for stage in (0, 1) for name in ("forward", "backward")]
    assert [one["seconds"] for one in found["durations"]] == pytest.approx(seconds, rel=0.01)
    assert found["rates"]["products"]["value"] == pytest.approx(REACHED, rel=0.04)
    assert main([*words, "--pipeline", "2", "--partition", "17,16"]) == 2
    assert "partition: found 33 layers; allowed: all of 1 embedding, 32 layer, 1 head" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: []", "steps: found none"),
        ("steps: [{seconds: 1, microbatches: 4, pipeline: 99}]", "steps[0]: found 99 stages; allowed: up to 34"),
        ("steps: [{seconds: 1, microbatches: 4, tensor: 3}]", "tensor"),
        ("steps: [{seconds: 1, microbatches: 4, schedule: 2f2b}]", "2f2b"),
        (
            "steps: [{seconds: 1, microbatches: 4, pipeline: 2, schedule: dualpipe}]",
            "steps[0].schedule: found dualpipe; allowed: a schedule that applies to this layout",
        ),
        ("steps: [{seconds: 1, microbatches: 4}]\nhardware: h100", "h100"),
        ("nothing: 1", "steps: missing"),
        (
            "layers: [{name: a, forward: 1, backward: 2}]\ndevices: 1\nmicrobatches: 1\ntime_unit: ms",
            "types of layers a;",
        ),
    ],
)
def test_bad_input(text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "given.yaml"
    path.write_text(text + "\n")
    known = ["--hardware", "a100-80gb", "--config", str(CONFIG)]
    if "hardware" in text:
        known = known[2:]
    assert main(["calibrate", str(path), *known]) == 2
    assert said in capsys.readouterr().err


def test_steps_are_no_problem_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(steps_file(tmp_path))]) == 2
    assert "found measured steps (`pipesched calibrate` reads them)" in capsys.readouterr().err
