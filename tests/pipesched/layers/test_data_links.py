"""Bandwidth of data parallel exchange by nodes: between, beyond and at the measured numbers, and where it is used."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.data_links import ByNodes
from pipesched.layers.derived.shape import Parallel

MEASURED = ByNodes(((1, 436.0), (4, 160.0), (16, 85.0), (64, 33.0)))


def test_rates_between_and_beyond_what_was_measured() -> None:
    assert [MEASURED.at(nodes) for nodes in (1, 4, 16, 64, 500)] == pytest.approx([436, 160, 85, 33, 33])
    assert MEASURED.at(8) == pytest.approx((160 * 85) ** 0.5)  # half way between the logarithms
    assert MEASURED.at(2) == pytest.approx((436 * 160) ** 0.5)
    assert ByNodes(((4, 160.0), (16, 85.0))).at(1) == 160
    rates = [MEASURED.at(nodes) for nodes in range(1, 70)]
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("parallel", "rate"),
    [
        (Parallel(tensor=1, data=8), 436),  # a node
        (Parallel(tensor=8, data=1), 436),
        (Parallel(tensor=1, data=32), 160),  # all devices of four
        (Parallel(tensor=1, context=8, data=4), 160),
        (Parallel(tensor=2, data=16), 80),  # half of the devices of a node, and of 160
        (Parallel(tensor=8, data=4), 20),
        (Parallel(tensor=8, data=2), 436**0.5 * 160**0.5 / 8),  # on two nodes more than the 160 of four
        (Parallel(tensor=2, data=64), 80),  # less than the 85 of sixteen
        (Parallel(tensor=1, data=128), 85),
        (Parallel(tensor=4, data=128), 33),  # a quarter of 160 is more
        (Parallel(tensor=1, context=1, data=20), 436 * (160 / 436) ** (log(3) / log(4))),  # three nodes
    ],
)
def test_groups_that_share_a_node_share_its_links(parallel: Parallel, rate: float) -> None:
    assert MEASURED.of_stage(parallel, 8) == pytest.approx(rate)


def test_a_table_without_several_nodes_is_shared_too() -> None:
    assert ByNodes(((1, 400.0),)).of_stage(Parallel(tensor=4, data=16), 8) == 100


def plan(**hardware: Any) -> dict[str, Any]:
    """A plan whose stages are of 128 devices, two of which share a tensor group."""
    model = {
        "layers": 4, "hidden": 1024, "vocabulary": 1000, "ffn": 4096, "sequence": 1024, "microbatch_size": 1,
        "attention": {"heads": 8}, "parallel": {"tensor": 2, "data": 64},
    }  # fmt: skip
    rates = {"sustained_tflops": 100, "memory": 80, "pipeline_bandwidth": 20, "tensor_bandwidth": 100}
    return {"devices": 2, "microbatches": 4, "model": model, "hardware": rates | hardware}


def test_a_plan_file_has_the_rate_of_its_own_groups() -> None:
    table = {1: 436, 4: 160, 16: 85, 64: 33}
    by_nodes = plan_problem_from(plan(node=8, data_bandwidth=table)).step
    one = plan_problem_from(plan(data_bandwidth=80)).step
    assert by_nodes is not None and one is not None
    assert by_nodes.reduction == one.reduction and any(by_nodes.reduction.values())
    assert by_nodes.assumed["data_bandwidth"] == 80
    text = plan_problem_from(plan(node=8, data_bandwidth={str(nodes): rate for nodes, rate in table.items()})).step
    assert text is not None and text.reduction == one.reduction  # keys of JSON


@pytest.mark.parametrize(
    ("table", "nodes", "said"),
    [
        ({1: 436}, 8, "16 nodes, hardware.data_bandwidth has no rate of more than 1: that of 1, 436 GB/s"),
        ({4: 160, 1: 436}, 8, "16 nodes, hardware.data_bandwidth has no rate of more than 4: that of 4, 160 GB/s"),
        ({1: 436, 4: 160, 16: 85}, 8, None),
        ({1: 436, 64: 33}, 8, None),
        ({1: 436}, 128, None),
        (80, 8, None),
    ],
)
def test_a_stage_of_more_nodes_than_the_table_says_so(table: Any, nodes: int, said: str | None) -> None:
    found = plan_problem_from(plan(node=nodes, data_bandwidth=table)).assumptions
    assert [line for line in found if "has no rate" in line] == (
        [] if said is None else [f"data parallel: a stage is on {said}, is used"]
    )


def test_a_stage_without_replicas_exchanges_no_gradients_over_nodes() -> None:
    document = plan(node=1, data_bandwidth={1: 436})
    for data, lines in ((2, 1), (1, 0)):
        document["model"]["parallel"] = {"tensor": 2, "data": data}
        assert sum("no rate" in line for line in plan_problem_from(document).assumptions) == lines


@pytest.mark.parametrize(
    ("hardware", "said"),
    [
        ({"data_bandwidth": {1: 436, 4: 160}}, ["hardware.node: missing; it is required with hardware.data_bandwidth by"]),
        ({"node": 8, "data_bandwidth": {}}, ["hardware.data_bandwidth: found keys ; allowed: a number above 0, or a table"]),
        ({"node": 8, "data_bandwidth": [436, 160]}, ["hardware.data_bandwidth: found [436, 160]; allowed: a number above"]),
        ({"node": 8, "data_bandwidth": {0: 436, "x": 1, 1.5: 1, 99999999999: 1}},
         [f"hardware.data_bandwidth: found '{key}'; allowed: a whole number of nodes from 1 to 999999999"
          for key in ("0", "x", "1.5", "99999999999")]),
        ({"node": 8, "data_bandwidth": {1: 0, 4: "fast", 8: -1, 16: True}},
         [f"hardware.data_bandwidth.{nodes}: found {found}; allowed: a number above 0"
          for nodes, found in ((1, "0"), (4, "'fast'"), (8, "-1"), (16, "true"))]),
        ({"data_bandwidth": 0}, ["hardware.data_bandwidth: found 0; allowed: a number above 0, or a table"]),
    ],
)  # fmt: skip
def test_a_line_for_each_mistake_of_a_table(hardware: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(BadInput) as caught:
        plan_problem_from(plan(**hardware))
    assert len(caught.value.mistakes) == len(said)
    for mistake, words in zip(caught.value.mistakes, said, strict=True):
        assert words in mistake


def test_no_device_of_the_table_has_measured_links() -> None:
    assert all(device.data_bandwidth is None for device in DEVICES.values())
