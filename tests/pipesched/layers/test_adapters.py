"""Layers with adapters of a rank: their own weights are frozen, and their adapters alone train."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.adapters import adapter_parameters
from pipesched.layers.derived.operations import layer_products
from pipesched.layers.derived.shape import Attention, Experts, LayerKind, Lora, Parallel, Shape, Training
from pipesched.layers.layer import LayerType
from solver.planning.plan import plan
from tests.support.counted import counted

# Llama 2 7B, and 16 experts in place of its feed-forward block.
LLAMA = Shape(32, 4096, 32000, Attention(32, 32, 128), 11008, 32)
MODEL: dict[str, Any] = {
    "layers": 4, "hidden": 1024, "vocabulary": 2048, "ffn": 4096, "sequence": 2048,
    "attention": {"heads": 16, "kv_heads": 4}, "mtp_layers": 1,
}  # fmt: skip
HARDWARE = {"sustained_tflops": 100, "memory": 10, "pipeline_bandwidth": 10}


def _plan(hardware: dict[str, Any] | None = None, **more: Any) -> Any:
    document = {"devices": 2, "microbatches": 4, "model": MODEL | more, "hardware": HARDWARE | (hardware or {})}
    return plan_problem_from(document)


def _layers(hardware: dict[str, Any] | None = None, **more: Any) -> dict[str, LayerType]:
    return {layer.name: layer for layer in _plan(hardware, **more).model.layers}


@pytest.mark.parametrize(
    ("modules", "each"),
    [
        (("linear_qkv",), 4096 + 3 * 4096),
        (("linear_proj",), 4096 + 4096),
        (("linear_fc1",), 4096 + 2 * 11008),
        (("linear_fc2",), 11008 + 4096),
        (("linear_qkv", "linear_fc2"), 4 * 4096 + 11008 + 4096),
    ],
)
def test_parameters_of_adapters(modules: tuple[str, ...], each: int) -> None:
    """As many as the rank for every number that goes into a product and comes out of it."""
    products = layer_products(LLAMA, Training(4096), Parallel(), LayerKind(False))
    assert adapter_parameters(Lora(16, modules), products)[:2] == (16 * each, 0)


def test_every_expert_has_its_own() -> None:
    shape = Shape(32, 4096, 32000, Attention(32, 32, 128), 0, 0, Experts(16, 2, 0, 1024))
    products = layer_products(shape, Training(4096), Parallel(), LayerKind(True))
    found = adapter_parameters(Lora(8, ("linear_proj", "linear_fc2")), products)
    assert found[:2] == (8 * 2 * 4096, 16 * 8 * (1024 + 4096))


def test_weights_of_the_layer_alone_and_all_of_its_adapters() -> None:
    """2 bytes of each weight, and 18 of each of an adapter's; W is that of the adapters, and B stays."""
    every, own = _layers(), _layers(lora={"rank": 16})
    adapters = 16 * ((1024 + 1024 + 2 * 4 * 64) + 2048 + (1024 + 2 * 4096) + (4096 + 1024))
    expected = every["layer"].memory / 9 + Fraction(18 * adapters, 2**30)
    assert float(own["layer"].memory) == pytest.approx(float(expected), rel=2e-3)
    # 3 times as many operations as parameters of both, tokens of 2 each, at the given rate.
    work = Fraction(2 * adapters * 2048, 10**14) * 1000
    assert own["layer"].weight is not None
    assert float(own["layer"].weight) == pytest.approx(float(work), rel=2e-2)
    assert float(own["layer"].forward - every["layer"].forward) == pytest.approx(float(work), rel=2e-2)
    assert float(own["layer"].backward - every["layer"].backward) == pytest.approx(float(work), rel=2e-2)
    assert own["layer"].activation > every["layer"].activation
    assert (own["head"].weight, own["head"].backward) == (0, every["head"].backward)
    assert float(own["head"].memory) == pytest.approx(float(every["head"].memory) / 9, abs=1e-3)
    assert own["embedding"].forward_only and not own["layer"].forward_only and not own["mtp"].forward_only


@pytest.mark.parametrize(
    ("modules", "dropped"),
    [
        (["linear_qkv"], 1024 + 4096),
        (["linear_fc1"], 1024 + 4096),
        (["linear_fc2"], 1024 + 1024),
        (["linear_qkv", "linear_fc1", "linear_fc2"], 0),
        (["linear_proj"], 1024 + 1024 + 4096),
    ],
)
def test_inputs_of_frozen_products_are_not_kept(modules: list[str], dropped: int) -> None:
    """Two bytes of each number that no gradient of a weight reads; each adapter keeps as many numbers as its rank.

    What goes into the projection of attention's output is kept for attention's own backward.
    """
    every, own = _layers()["layer"], _layers(lora={"rank": 16, "modules": modules})["layer"]
    saved = 2 * 2048 * Fraction(dropped - 16 * len(modules), 2**30)
    assert float(every.activation - own.activation) == pytest.approx(float(saved), abs=1e-4)


def test_frozen_layers_keep_no_inputs_of_products() -> None:
    every, own = _layers()["layer"], _layers(frozen=["layer"])["layer"]
    saved = 2 * 2048 * Fraction(1024 + 1024 + 4096, 2**30)
    assert float(every.activation - own.activation) == pytest.approx(float(saved), abs=1e-4)
    experts = {"number": 8, "per_token": 2, "ffn": 512}
    every, own = _layers(experts=experts)["moe"], _layers(experts=experts, frozen=["moe"])["moe"]
    saved = 2 * 2048 * Fraction(1024 + 2 * (1024 + 512), 2**30)
    # The normalized states too, of which the router's product is frozen as well.
    assert float(every.activation - own.activation) == pytest.approx(
        float(saved + 2 * 2048 * Fraction(1024, 2**30)), abs=1e-4
    )


def test_adapters_alone_are_reduced_and_stepped() -> None:
    rates = {"data_bandwidth": 1, "memory_bandwidth": 1000}
    parallel = {"parallel": {"data": 4}}
    every, own = _plan(rates, **parallel).step, _plan(rates, **parallel, lora={"rank": 16}).step
    assert {*own.reduction} == {*own.optimizer} == {"layer", "mtp"}
    assert 0 < own.reduction["layer"] < every.reduction["layer"] / 50
    assert 0 < own.optimizer["layer"] < every.optimizer["layer"] / 50


def test_frozen_layers_have_no_adapters() -> None:
    every, own = _layers(frozen=["embedding", "layer"]), _layers(frozen=["layer"], lora={"rank": 16})
    assert own["layer"] == every["layer"]
    assert own["mtp"].weight != every["mtp"].weight


def test_a_plan_sends_no_gradient_to_an_embedding_alone() -> None:
    found = plan(_plan(lora={"rank": 8, "modules": ["linear_qkv"]}), counted(2))
    assert found.value is not None and found.lower_bound <= found.value


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"lora": {}}, "model.lora.rank: missing; it is required"),
        ({"lora": {"rank": 0}}, "model.lora.rank: found 0; allowed: a whole number of at least 1"),
        (
            {"lora": {"rank": 4, "modules": ["q_proj"]}},
            "model.lora.modules[0]: found 'q_proj'; allowed: one of linear_",
        ),
    ],
)
def test_mistakes(more: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        _plan(**more)
    assert [mistake.replace("found q_proj", "found 'q_proj'").startswith(f"plan: {line}")
            for mistake in refused.value.mistakes] == [True]  # fmt: skip


def test_spans_are_refused_as_with_other_frozen_layers() -> None:
    document = {"devices": 2, "microbatches": 4, "model": MODEL | {"lora": {"rank": 4}}, "hardware": HARDWARE}
    with pytest.raises(BadInput, match="objective: found span with frozen layers before all that train"):
        plan_problem_from(document | {"objective": "span"})
