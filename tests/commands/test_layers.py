"""`layers`: what a plan file's model costs and holds, and the same as a file without formulas."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

from commands.main import main
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.layers_text import layers_text, number_text
from pipesched.files.model_configs.hardware_file import find_device
from pipesched.files.peaks_file import peaks_from, read_peaks
from pipesched.files.plan_file import plan_problem_from, read_plan
from pipesched.files.steps_file import steps_from
from pipesched.layers.derived.data_links import ByNodes
from pipesched.layers.layer import LayerType, RecomputeMode

ROOT = Path(__file__).resolve().parents[2]
PLANS = sorted((ROOT / "examples" / "plans").glob("*-80gb.yaml"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_the_written_layers_are_those_derived(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "layers.yaml"
    assert main(["layers", str(path), "--json", "-o", str(written)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["assumptions"] and found["time_unit"] == "ms"
    plan = read_plan(path)
    lines = f"devices: {plan.cluster.devices}\nmicrobatches: {plan.microbatches}\n" + written.read_text()
    again = plan_problem_from(read_yaml(lines, "written"))
    assert again.cluster.capacity == plan.cluster.capacity and again.cluster.transfer == plan.cluster.transfer
    for one, other in zip(plan.model.layers, again.model.layers, strict=True):
        assert (one.name, one.count, one.forward, one.backward, one.weight) == (
            other.name,
            other.count,
            other.forward,
            other.backward,
            other.weight,
        )
        for value, copy in ((one.memory, other.memory), (one.activation, other.activation)):
            assert value == copy
    assert [one["name"] for one in found["layers"]] == [one.name for one in plan.model.layers]


def test_kimi_k2_holds_what_its_report_says() -> None:
    """Section 2.4.2: about 30 GB of model state on a device; with Muon, which has one moment where Adam has two."""
    plan = read_plan(next(path for path in PLANS if path.stem.startswith("kimi")))
    held = sum(layer.count * layer.memory for layer in plan.model.layers) * 2**30 / 10**9 / plan.cluster.devices
    assert float(held) == pytest.approx(30, rel=0.15)


def test_layers_are_shown_with_their_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["layers", str(PLANS[0])]) == 0
    shown = capsys.readouterr().out
    assert "671.03 billion" in shown and "full" in shown


@pytest.mark.parametrize("up", [True, False])
def test_numbers_that_end_are_written_whole(up: bool) -> None:
    """As capacities and activations do, which are whole numbers of a power of two."""
    for number in (Fraction(77018, 2**10), Fraction(10**12) + Fraction(1, 2**20), Fraction(1, 10**20), Fraction(-3, 8)):
        assert Fraction(number_text(number, up)) == number
    assert number_text(Fraction(1, 2**21), up) == ("0.000001" if up else "0")


def test_every_key_of_a_layer_is_written() -> None:
    """What has no end is rounded up where it is held, and down where it is given back."""
    third = Fraction(1, 3)
    ways = (RecomputeMode("full", Fraction(2), third),)
    layer = LayerType("a", third, Fraction(2), 4, Fraction(1), Fraction(5, 2), third, third, Fraction(-1, 3), ways)
    other = LayerType("b", Fraction(1), Fraction(1), weight=Fraction(0), with_previous=True)
    first, second = read_yaml(layers_text((layer, other)), "text")["layers"]  # type: ignore[index]
    assert {key: str(value) for key, value in first.items() if key != "recompute"} == {
        "name": "a",
        "count": "4",
        "forward": "0.333334",
        "backward": "2",
        "weight": "1",
        "fused": "2.5",
        "memory": "0.333334",
        "activation": "0.333334",
        "freed_by_backward": "-0.333334",
    }
    assert {key: str(value) for key, value in first["recompute"][0].items()} == {
        "name": "full",
        "time": "2",
        "keeps": "0.333334",
    }
    assert second == {"name": "b", "forward": 1, "backward": 1, "weight": 0, "with_previous": True}


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        (
            {"sequence_chunks": {"count": 2}},
            {"attention": "50%", "attention_backward": 0.25, "kept_for_later": 0.5},
        ),
        ({}, {"overlapped": 2.5}),
        (
            {"objective": "iteration", "parameters": {"gather": {"on": "dp"}, "reduce": {"on": "dp"}, "step": {}}},
            {"gather": 1, "gathered": 2, "reduce": 3, "step": 4},
        ),
        ({}, {"frozen": True}),
    ],
    ids=("pieces", "blocks", "parameters", "frozen"),
)
def test_keys_of_a_layer_that_a_feature_has_are_written(
    more: dict[str, object], keys: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    common = {"devices": 2, "microbatches": 2, "memory": {"capacity": 40}} | more
    costs = {"forward": 1, "backward": 2, "activation": 1, "memory": 3}
    layers = [{"name": "a", **costs, **keys}, {"name": "b", "count": 2, **costs}]
    file, written = tmp_path / "plan.json", tmp_path / "layers.yaml"
    file.write_text(json.dumps(common | {"layers": layers}), encoding="utf-8")
    assert main(["layers", str(file), "-o", str(written)]) == 0
    again = plan_problem_from(common | {"layers": read_yaml(written.read_text(), "written")["layers"]})  # type: ignore[index]
    assert again.model == read_plan(file).model
    assert again.model.layers[0] != again.model.layers[1].alone


def test_the_files_in_the_documentation_are_read(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    plan, steps, _, _, peaks = (read_yaml(block, "docs") for block in blocks)
    hardware = tmp_path / "ours.yaml"
    hardware.write_text(blocks[2], encoding="utf-8")
    assert len(plan_problem_from(plan).model.sequence) == 64
    assert len(steps_from(steps, "docs").steps) == len(steps["steps"])  # type: ignore[index, call-overload]
    assert find_device(str(hardware)).name == "ours"
    hardware.write_text(blocks[3], encoding="utf-8")
    assert isinstance(find_device(str(hardware)).device.data_bandwidth, ByNodes)
    assert len(peaks_from(peaks).peaks) == 7
    assert len(read_peaks(ROOT / "examples" / "peaks" / "four-devices.yaml").peaks) == 12
