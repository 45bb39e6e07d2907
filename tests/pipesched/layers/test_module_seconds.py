"""Seconds of recomputed modules: shared experts have their activation function, and its input in other formats."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from pipesched.layers.derived.kernels import module_seconds
from pipesched.layers.derived.precision import PRECISIONS
from pipesched.layers.derived.shape import (
    Attention,
    Experts,
    Hardware,
    LayerKind,
    Parallel,
    Shape,
    Training,
)

SHAPE = Shape(4, 1024, 32000, Attention(8, 8, 128), 4096, 0, Experts(8, 2, 1, 512))
RATE = 2e12
HARDWARE = Hardware(flops=5e14, memory=Fraction(80 * 2**30), pipeline=5e10, memory_rate=RATE)
PLAIN = Training(4096)
KEPT = replace(PLAIN, precision=PRECISIONS["bf16"]._replace(activation_input=1))


def seconds(module: str, training: Training = PLAIN, shared: int = 1, hardware: Hardware = HARDWARE) -> float:
    experts = SHAPE.experts
    assert experts is not None
    shape = replace(SHAPE, experts=replace(experts, shared=shared))
    return module_seconds(shape, training, Parallel(), hardware, module, LayerKind(True))


def test_shared_experts_run_their_activation_function() -> None:
    """A gated function reads two widths and writes one, of 2 bytes each."""
    products = seconds("shared_experts", hardware=replace(HARDWARE, memory_rate=None))
    read = seconds("shared_experts") - products
    written = 4096 * (2 * 512 + 1024) * 2  # results of both products
    assert read == pytest.approx((4096 * 3 * 512 * 2 + written) / RATE, rel=1e-6)
    assert seconds("shared_experts", shared=2) == pytest.approx(2 * seconds("shared_experts"), rel=0.2)


def test_inputs_of_activation_functions_kept_in_8_bits_are_written_again() -> None:
    """What is kept of both widths is read in 16 bits and written in 8."""
    copied = 4096 * 2 * 512 * (2 + 1) / RATE
    assert seconds("shared_experts", KEPT) - seconds("shared_experts") == pytest.approx(copied)
    assert seconds("moe", KEPT) - seconds("moe") == pytest.approx(3 * copied)  # two of a token, and the shared one
    assert seconds("moe_act", KEPT) == seconds("moe_act")


def test_a_block_of_experts_has_what_its_shared_ones_have() -> None:
    assert seconds("moe") - seconds("moe", shared=0) == pytest.approx(seconds("shared_experts"), rel=0.02)


@pytest.mark.parametrize(
    ("module", "dtype", "fused", "moved"),
    [
        ("mlp", "fp8", False, (1024 + 4096) * (4 + 2)),  # inputs of both products, each in two copies, with a scale
        ("mlp", "mxfp8", False, (1024 + 4096) * 4),
        ("mlp", "bf16", False, 0),
        ("moe", "fp8", False, 2 * (1024 + 512) * 20),  # two experts a token, with kernels for each
        ("moe", "fp8", True, 2 * 1024 * 6),  # its kernel converts what the second products read
        ("moe", "bf16", True, 0),
    ],
)
def test_recomputed_blocks_convert_what_their_products_read(module: str, dtype: str, fused: bool, moved: int) -> None:
    """Without a rate of narrow products these take as long, if multiplying takes longer than reading."""
    slow = replace(HARDWARE, flops=1e13)
    training = replace(PLAIN, fused_experts=fused)
    narrow = replace(training, precision=PRECISIONS[dtype])
    found = seconds(module, narrow, hardware=slow) - seconds(module, training, hardware=slow)
    assert found == pytest.approx(4096 * moved / RATE)
