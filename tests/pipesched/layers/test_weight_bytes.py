"""Weights that layers keep in fewer bytes than activations: their memory, and what is gathered of them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.layer import LayerType

_MODEL: dict[str, Any] = {
    "layers": 4, "hidden": 1024, "vocabulary": 2048, "ffn": 4096, "sequence": 2048, "attention": {"heads": 16},
    "dtype": "fp8",
}  # fmt: skip
_HARDWARE = {"sustained_tflops": 1e6, "memory": 10, "pipeline_bandwidth": 10}
_WEIGHTS = 4 * 1024**2 + 3 * 1024 * 4096 + 2 * 1024


def _layers(hardware: dict[str, Any] | None = None, **more: Any) -> dict[str, LayerType]:
    document = {"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": _HARDWARE | (hardware or {})}
    return {layer.name: layer for layer in plan_problem_from(document).model.layers}


@pytest.mark.parametrize("more", [{}, {"frozen": ["layer"]}, {"lora": {"rank": 8}}, {"parallel": {"tensor": 1}}])
def test_each_weight_of_a_layer_takes_a_byte_less(more: dict[str, Any]) -> None:
    """Those of embedding and head, and of adapters, do not."""
    every, own = _layers(**more), _layers(**more, weight_bytes=1)
    saved = float(Fraction(_WEIGHTS, 2**30))
    assert float(every["layer"].memory - own["layer"].memory) == pytest.approx(saved, abs=1e-4)
    for name in ("embedding", "head"):
        assert own[name].memory == every[name].memory
    assert own["layer"].activation == every["layer"].activation


@pytest.mark.parametrize(
    ("dtype", "number", "more"), [("bf16", 1, -1), ("bf16", 4, 2), ("fp16", 1, -1), ("fp32", 2, -2), ("fp8", 4, 2)]
)
@pytest.mark.parametrize("lora", [None, {"rank": 8}])
def test_weights_of_layers_in_any_format_take_what_is_given(
    dtype: str, number: int, more: int, lora: dict[str, Any] | None
) -> None:
    every, own = _layers(dtype=dtype, lora=lora), _layers(dtype=dtype, lora=lora, weight_bytes=number)
    added = float(Fraction(more * _WEIGHTS, 2**30))
    assert float(own["layer"].memory - every["layer"].memory) == pytest.approx(added, abs=1e-4)


def test_routers_in_16_bits_take_no_fewer_bytes_than_the_other_weights() -> None:
    """With 4 bytes a weight each takes two more than in 16 bits, with 1 the router none less."""
    shape: dict[str, Any] = {"ffn": None, "experts": {"number": 64, "per_token": 2, "ffn": 64}}
    router = 64 * 1024
    weights = 4 * 1024**2 + 64 * 3 * 64 * 1024 + router + 2 * 1024
    every = _layers(**shape)["moe"].memory
    for number, more in ((4, 2 * weights), (1, router - weights)):
        own = _layers(**shape, weight_bytes=number)["moe"].memory
        assert float(own - every) == pytest.approx(float(Fraction(more, 2**30)), abs=2e-5)


def test_sharded_weights_are_gathered_in_fewer_bytes() -> None:
    """At a gigabyte a second the exchange of three quarters of the weights is all that a forward takes."""
    shared = {"parallel": {"data": 4, "sharding": "parameters"}}
    rate = {"data_bandwidth": 1}
    every, own = _layers(rate, **shared), _layers(rate, **shared, weight_bytes=1)
    assert float(own["layer"].forward) == pytest.approx(0.75 * _WEIGHTS / 1e6, rel=1e-3)
    assert float(every["layer"].forward) == pytest.approx(2 * 0.75 * _WEIGHTS / 1e6, rel=1e-3)
    gradients = 2 * 0.75 * _WEIGHTS / 1e6
    assert float(own["layer"].full_backward) == pytest.approx(0.75 * _WEIGHTS / 1e6 + gradients, rel=1e-2)


def test_a_number_of_bytes_is_at_least_one() -> None:
    with pytest.raises(BadInput, match=r"model\.weight_bytes: found 0; allowed: a whole number of at least 1"):
        _layers(weight_bytes=0)
