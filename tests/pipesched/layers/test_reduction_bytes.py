"""Gradients that FSDP reduces in another format than activations: their exchange, and the memory of a layer's."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.layer import LayerType
from pipesched.layers.model import Model

_MODEL: dict[str, Any] = {
    "layers": 4, "hidden": 1024, "vocabulary": 2048, "ffn": 4096, "sequence": 2048, "attention": {"heads": 16},
}  # fmt: skip
_HARDWARE = {"sustained_tflops": 1e6, "memory": 10, "pipeline_bandwidth": 10, "data_bandwidth": 1}
_WEIGHTS = 4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024
_SENT = 0.75 * _WEIGHTS / 1e6  # ms of a byte a parameter, of three quarters of them at a gigabyte a second


def _model(sharding: str, **more: Any) -> Model:
    model = _MODEL | {"parallel": {"data": 4, "sharding": sharding}} | more
    return plan_problem_from({"devices": 2, "microbatches": 4, "model": model, "hardware": _HARDWARE}).model


def _layer(sharding: str, **more: Any) -> LayerType:
    return next(layer for layer in _model(sharding, **more).layers if layer.name == "layer")


@pytest.mark.parametrize(
    ("more", "number"),
    [
        ({}, 2),
        ({"reduction_bytes": 4}, 4),
        ({"gradient_bytes": 1}, 1),
        ({"gradient_bytes": 2, "reduction_bytes": 4}, 4),
    ],
)
def test_a_backward_sends_gradients_in_the_format_that_reduces_them(more: dict[str, Any], number: int) -> None:
    """Behind these slow links that, and where parameters are sharded their gather of 2 bytes, is all that it takes."""
    assert float(_layer("gradients", **more).full_backward) == pytest.approx(number * _SENT, rel=1e-3)
    assert float(_layer("parameters", **more).full_backward) == pytest.approx((2 + number) * _SENT, rel=1e-3)
    assert float(_layer("parameters", **more).forward) == pytest.approx(2 * _SENT, rel=1e-3)


@pytest.mark.parametrize("sharding", ["none", "optimizer"])
def test_gradients_that_are_not_sharded_are_reduced_as_they_are_kept(sharding: str) -> None:
    assert _layer(sharding, reduction_bytes=4) == _layer(sharding)


def test_a_frozen_layer_reduces_none() -> None:
    frozen = {"frozen": ["layer"]}
    assert _layer("parameters", **frozen, reduction_bytes=4) == _layer("parameters", **frozen)


def _room(**more: Any) -> float:
    """Return the bytes that a device has for what stays, where weights are gathered."""
    hardware = _HARDWARE | {"memory_bandwidth": 1000}
    model = _MODEL | {"vocabulary": 128, "recompute": [], "parallel": {"data": 4, "sharding": "parameters"}} | more
    problem = plan_problem_from({"devices": 2, "microbatches": 4, "model": model, "hardware": hardware})
    assert problem.cluster.capacity is not None
    return float(problem.cluster.capacity[0]) * 2**30


@pytest.mark.parametrize(
    ("more", "trained"),
    [
        ({}, _WEIGHTS),
        ({"frozen": ["layer"]}, 0),
        # Inputs and columns of each: queries, keys and values; output; gate and up; down.
        ({"lora": {"rank": 64}}, 64 * (4 * 1024 + 2 * 1024 + 1024 + 2 * 4096 + 4096 + 1024)),
    ],
)
def test_gathered_memory_has_gradients_of_what_trains_alone(more: dict[str, Any], trained: int) -> None:
    """With 4 bytes two more of each gradient than with the two of activations; of frozen parameters none at all."""
    assert _room(**more) - _room(**more, reduction_bytes=4) == pytest.approx(2 * trained, abs=2e5)
    if more.keys() == {"frozen"}:
        assert _room(**more) - _room() == pytest.approx(2 * _WEIGHTS, abs=2e5)


def test_a_number_of_bytes_is_at_least_one() -> None:
    with pytest.raises(BadInput, match=r"model\.reduction_bytes: found 0; allowed: a whole number of at least 1"):
        _model("parameters", reduction_bytes=0)
