"""Hardware files and the options that say numbers of a device or of training: what they change, and every mistake."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measured.table import CONFIGS
from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_file import device_text, find_device, with_rates
from pipesched.files.model_configs.hardware_table import DEVICES, Device
from pipesched.layers.derived.data_links import ByNodes

H100 = DEVICES["h100-80gb"]
WHOLE = "tflops: 500\nmemory: 60\nmemory_bandwidth: 2000\nmultiprocessors: 100\nin_node: 150\nbetween_nodes: 20\n"
CONFIG = CONFIGS / "llama3-8b.json"


def new(tmp_path: Path, *words: str) -> dict[str, Any]:
    """The plan file that `new --from` writes."""
    out = tmp_path / f"{len([*tmp_path.iterdir()])}.yaml"
    sizes = ["--devices", "2", "--tensor", "2", "--microbatches", "8"]
    assert main(["new", "--from", str(CONFIG), *sizes, *words, "-o", str(out)]) == 0
    found = read_yaml(out.read_text(), "plan")
    assert isinstance(found, dict)
    return found


def test_a_file_that_is_like_a_device_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("name: ours\nlike: h100-80gb\nproducts: 0.47\nin_node: 200\nnode: 4\n")
    assert find_device(str(path)) == ("ours", replace(H100, products=0.47, in_node=200, node=4, source="ours.yaml"))
    path.write_text("like: h100-80gb\n")
    assert find_device(str(path)).name == "ours"


def test_a_file_of_its_own_has_usual_shares(tmp_path: Path) -> None:
    path = tmp_path / "other.json.yaml"
    path.write_text(WHOLE + "source: measured in house\n")
    device = find_device(str(path)).device
    assert device == Device(500, 60, 2000, 100, 150, 20, "measured in house")


@pytest.mark.parametrize("name", DEVICES)
def test_the_text_of_a_device_is_read_as_the_same(name: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    comments = {one.name: f"of {name}" for one in fields(Device)}
    path.write_text(device_text("its: name", DEVICES[name], comments))
    assert find_device(str(path)) == ("its: name", DEVICES[name])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tflops: 500\n", ["memory: missing", "memory_bandwidth: missing", "multiprocessors: missing",
                           "in_node: missing", "between_nodes: missing"]),
        ("like: h100\n", ["like: found 'h100'; allowed: one of v100-32gb"]),
        ("like: h100-80gb\nproducts: 1.2\ntensor_share: 0\n", ["products: found 1.2; allowed: a number above 0 and up to 1",
                                                              "tensor_share: found 0; allowed: a number above 0"]),
        ("like: h100-80gb\nnode: 2.5\n", ["node: found 2.5; allowed: a whole number of at least 1"]),
        ("like: h100-80gb\nmoe_launch: -1\n", ["moe_launch: found -1; allowed: a number above"]),
        ("like: h100-80gb\nproduct: 0.5\n", ["did you mean 'products'"]),
        ("- a\n", ["found"]),
    ],
)  # fmt: skip
def test_mistakes_of_a_file(text: str, said: list[str], tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text(text)
    with pytest.raises(BadInput) as caught:
        find_device(str(path))
    assert len(caught.value.mistakes) == len(said)
    for mistake, words in zip(caught.value.mistakes, said, strict=True):
        assert mistake.startswith(f"{path}: ") and words in mistake


def test_mistakes_of_a_name_and_of_rates(tmp_path: Path) -> None:
    for name, said in (
        ("h101-80gb", "did you mean 'h100-80gb'"),
        ("h100", "which may be h100-80gb or h100-80gb-vboost or h100-96gb; allowed: one of them, or a hardware"),
        ("h20", "which may be h20-96gb or h200-141gb"),
    ):
        with pytest.raises(BadInput, match=said):
            find_device(name)
    with pytest.raises(BadInput, match="no such file"):
        find_device(str(tmp_path / "none.yaml"))
    with pytest.raises(BadInput, match=r"--rate: products: found 2; allowed"):
        with_rates(H100, {"products": 2})


def test_a_hardware_file_and_rates_reach_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("like: h100-80gb\nproducts: 0.4\nin_node: 200\n")
    hardware = new(tmp_path, "--hardware", str(path))["hardware"]
    assert float(hardware["sustained_tflops"]) == pytest.approx(0.4 * H100.tflops, rel=1e-3)
    assert float(hardware["tensor_bandwidth"]) == pytest.approx(200 * H100.tensor_share, rel=1e-3)
    rates = ["--rate", "tensor_share=0.5", "--rate", "memory=70", "--node", "1"]
    hardware = new(tmp_path, "--hardware", str(path), *rates)["hardware"]
    assert float(hardware["tensor_bandwidth"]) == 0.5 * H100.between_nodes and hardware["memory"] == 70
    assert float(
        new(tmp_path, "--hardware", str(path), "--mfu", "0.3")["hardware"]["sustained_tflops"]
    ) == pytest.approx(0.3 * H100.tflops, rel=1e-3)


def test_bandwidth_by_nodes_of_a_file_or_of_rates_reaches_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "ours.yaml"
    path.write_text("like: h100-80gb\nnode: 4\ndata_bandwidth: {16: 85.5, 1: 436, 4: 160}\n")
    device = find_device(str(path)).device
    assert device.data_bandwidth == ByNodes(((1, 436), (4, 160), (16, 85.5)))
    path.write_text(device_text("ours", device, {}))
    assert find_device(str(path)).device == device
    sizes = ["--hardware", str(path), "--data", "16"]
    hardware = new(tmp_path, *sizes)["hardware"]
    assert hardware["node"] == 4 and {**hardware["data_bandwidth"]} == {1: 436, 4: 160, 16: Decimal("85.5")}
    assert "data_bandwidth" not in new(tmp_path, "--hardware", str(path))["hardware"]  # no replicas
    rates = ["--hardware", "h100-80gb", "--data", "16", "--rate"]
    assert new(tmp_path, *rates, "data_bandwidth={1: 400, 4: 90}")["hardware"]["data_bandwidth"] == {1: 400, 4: 90}
    assert new(tmp_path, *rates, "data_bandwidth=33")["hardware"]["data_bandwidth"] == 33
    with pytest.raises(BadInput, match=r"--rate: data_bandwidth.4: found 0; allowed: a number above 0"):
        with_rates(H100, {"data_bandwidth": {1: 400, 4: 0}})


def test_options_of_training_reach_the_plan(tmp_path: Path) -> None:
    words = ["--training", "gradient_bytes=2", "--training", "recompute=[layernorm+mlp]", "--dtype", "fp8"]
    found = new(tmp_path, "--hardware", "h100-80gb", *words, "--training", "sharding=parameters", "--training",
                "sequence=false")  # fmt: skip
    model = found["model"]
    assert (model["dtype"], model["gradient_bytes"], model["recompute"]) == ("fp8", 2, ["layernorm+mlp"])
    assert model["parallel"]["sharding"] == "parameters" and model["parallel"]["sequence"] is False
    rate = float(found["hardware"]["product_tflops"])
    assert H100.tflops_8bit is not None and rate == pytest.approx(H100.tflops_8bit * H100.narrow_products, rel=1e-3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rate", "products"], "--rate: found 'products'; allowed: KEY=VALUE"),
        (["--rate", "=1"], "--rate: found '=1'; allowed: KEY=VALUE"),
        (["--rate", "product=0.5"], "did you mean 'products'"),
        (["--rate", "products=all"], "--rate: products: found 'all'; allowed: a number above 0"),
        (["--training", "gradient_byte=2"], "gradient_byte"),
        (["--training", "sharding=all"], "sharding"),
    ],
)
def test_mistakes_of_options(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--devices", "2", "--microbatches", "8", "--hardware", "h100-80gb", "-o", str(tmp_path / "plan.yaml")]
    assert main(["new", "--from", str(CONFIG), *sizes, *words]) == 2
    assert said in capsys.readouterr().err and not (tmp_path / "plan.yaml").exists()
