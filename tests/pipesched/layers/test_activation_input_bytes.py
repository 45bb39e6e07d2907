"""The input of the activation function kept in fewer bytes: what a layer holds, and the copies that this takes."""

from __future__ import annotations

from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.layer import LayerType
from pipesched.layers.plan_problem import PlanProblem

_TOKENS, _FFN, _EXPERT = 8192, 4096, 512
_MODEL: dict[str, Any] = {
    "layers": 4, "hidden": 1024, "vocabulary": 2048, "ffn": _FFN, "sequence": _TOKENS, "attention": {"heads": 16},
    "weight_split": False, "recompute": ["full", "mlp"],
}  # fmt: skip
_EXPERTS = {"experts": {"number": 8, "per_token": 2, "ffn": _EXPERT, "shared": 1}, "recompute": ["moe"]}
_RATE = 100e9  # bytes a second
_HARDWARE = {
    "sustained_tflops": 1e6, "memory_bandwidth": _RATE / 1e9, "memory": 10, "pipeline_bandwidth": 10,
    "tensor_bandwidth": 10,
}  # fmt: skip
_ROUNDED = 3e-4  # GiB: a step of derived memory is 1 / 4096


def _plan(**more: Any) -> PlanProblem:
    return plan_problem_from({"devices": 2, "microbatches": 4, "model": _MODEL | more, "hardware": _HARDWARE})


def _layer(**more: Any) -> LayerType:
    return next(layer for layer in _plan(**more).model.layers if layer.name in ("layer", "moe"))


@pytest.mark.parametrize(
    ("more", "numbers"),
    [
        ({}, 2 * _FFN),
        ({"fused_activation": False}, 2 * _FFN),
        ({"gated": False}, _FFN),
        (_EXPERTS, 2 * 3 * _EXPERT),
        ({"frozen": ["layer"]}, 2 * _FFN),
        ({"lora": {"rank": 8}}, 2 * _FFN),
        ({"parallel": {"tensor": 4}}, 2 * _FFN // 4),
    ],
)
def test_a_layer_keeps_a_byte_less_of_each_number(more: dict[str, Any], numbers: int) -> None:
    every, own = _layer(**more), _layer(**more, activation_input_bytes=1)
    assert float(every.activation - own.activation) == pytest.approx(_TOKENS * numbers / 2**30, abs=_ROUNDED)
    assert float(own.memory) == pytest.approx(float(every.memory), abs=_ROUNDED)


@pytest.mark.parametrize(("more", "numbers"), [({}, 2 * _FFN), ({"gated": False}, _FFN), (_EXPERTS, 6 * _EXPERT)])
def test_copies_take_three_bytes_a_number_each_way(more: dict[str, Any], numbers: int) -> None:
    """Two read and one written in the forward, one read and two written in the backward."""
    every, own = _layer(**more), _layer(**more, activation_input_bytes=1)
    copied = 3 * _TOKENS * numbers / _RATE * 1000
    assert float(own.forward - every.forward) == pytest.approx(copied, rel=1e-2)
    assert float(own.full_backward - every.full_backward) == pytest.approx(copied, rel=1e-2)
    again = [(a.time, b.time) for a, b in zip(own.recompute, every.recompute, strict=True)]
    assert again and all(float(a - b) == pytest.approx(copied, rel=1e-2) for a, b in again)


def test_kernels_of_experts_products_copy_by_themselves() -> None:
    """Only the shared expert, which is dense, has copies of its own."""
    every, own = (_layer(**_EXPERTS, fused_experts=True, **more) for more in ({}, {"activation_input_bytes": 1}))
    copied = 3 * _TOKENS * 2 * _EXPERT / _RATE * 1000
    assert float(own.forward - every.forward) == pytest.approx(copied, rel=1e-2)
    assert float(every.activation - own.activation) == pytest.approx(_TOKENS * 6 * _EXPERT / 2**30, abs=_ROUNDED)


def test_the_assumption_says_so_and_a_number_of_bytes_is_at_least_one() -> None:
    said = [any("1 of the input of activation functions" in text for text in _plan(**more).assumptions)
            for more in ({}, {"activation_input_bytes": 2}, {"activation_input_bytes": 1})]  # fmt: skip
    assert said == [False, False, True]
    with pytest.raises(
        BadInput, match=r"model\.activation_input_bytes: found 0; allowed: a whole number of at least 1"
    ):
        _layer(activation_input_bytes=0)
