"""Layers derived from a model's shape: published parameter counts, the paper's formulas, and what a file may say."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from statistics import mean
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.activations import head_activation, layer_activation
from pipesched.layers.derived.derive import derive
from pipesched.layers.derived.exchange import context_bytes, expert_seconds, tensor_bytes
from pipesched.layers.derived.kernels import (
    attention_seconds,
    layer_traffic,
    product_seconds,
    products_seconds,
    ring_seconds,
)
from pipesched.layers.derived.model_operations import model_operations
from pipesched.layers.derived.operations import (
    Product,
    attention_operations,
    head_products,
    layer_products,
    operations_of,
)
from pipesched.layers.derived.parameters import (
    active_parameters,
    layer_parameters,
    state_bytes,
    total_parameters,
)
from pipesched.layers.derived.precision import PRECISIONS
from pipesched.layers.derived.shape import (
    Attention,
    Experts,
    Hardware,
    LatentAttention,
    LayerKind,
    Lora,
    Loss,
    Parallel,
    Shape,
    Sharding,
    Training,
)
from tests.support.in_turn import in_turn

BF16 = PRECISIONS["bf16"]
DENSE, MOE = LayerKind(False), LayerKind(True)
LLAMA_8B = Shape(32, 4096, 128256, Attention(32, 8, 128), 14336, 32)
LLAMA_70B = Shape(80, 8192, 128256, Attention(64, 8, 128), 28672, 80)
DEEPSEEK_V3 = Shape(61, 7168, 129280, LatentAttention(128, 1536, 512, 128, 64, 128), 18432, 3, Experts(256, 8, 1, 2048))
KIMI_K2 = Shape(61, 7168, 163840, LatentAttention(64, 1536, 512, 128, 64, 128), 18432, 1, Experts(384, 8, 1, 2048))
GPT_3 = Shape(96, 12288, 50257, Attention(96, 96, 128), 4 * 12288, 96, gated=False)


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [  # as counted in the published checkpoints
        (LLAMA_8B, 8_030_261_248),
        (LLAMA_70B, 70_553_706_496),
        (DEEPSEEK_V3, 671_026_419_200),
        (KIMI_K2, 1_026_408_232_448),
    ],
)
def test_parameters_of_published_models(shape: Shape, parameters: int) -> None:
    assert total_parameters(shape) == parameters


@pytest.mark.parametrize(("shape", "billions"), [(DEEPSEEK_V3, 37), (KIMI_K2, 32.6), (LLAMA_8B, 8.03)])
def test_parameters_that_a_token_uses(shape: Shape, billions: float) -> None:
    """The models' reports: 37 and 32.6 billion."""
    assert active_parameters(shape) / 1e9 == pytest.approx(billions, rel=0.02)


@pytest.mark.parametrize("tensor", [1, 8])
def test_activations_are_those_of_the_paper(tensor: int) -> None:
    """s·b·h·(34 + 5·a·s/h), without the scores 34·s·b·h, the head 4·s·b·h·(1 + v/h); divided by the tensor size."""
    s, b, h = 2048, 2, GPT_3.hidden
    parallel = Parallel(tensor=tensor)
    for flash in (False, True):
        found = layer_activation(GPT_3, Training(s, b, flash=flash, dropout=True), parallel, DENSE)
        scores = 0 if flash else Fraction(5 * 96 * s, h)
        assert found.total == s * b * h * (34 + scores) / tensor
        assert found.scores == s * b * h * scores / tensor
        assert found.freed_by_backward == s * b * h * (2 + scores) / tensor
    head = head_activation(GPT_3, Training(s, b), parallel)
    assert head.total == Fraction(4 * s * b * (h + GPT_3.vocabulary), tensor)


def test_state_is_18_bytes_a_parameter() -> None:
    """6 + 12 / (devices with the same parameters); over all devices of a stage every expert is held once a replica."""
    one = layer_parameters(DEEPSEEK_V3, MOE)
    assert state_bytes(one, Parallel(), BF16) == 18 * one.total
    dense = layer_parameters(LLAMA_8B, DENSE)
    assert state_bytes(dense, Parallel(data=4, context=2), BF16) == (6 + Fraction(12, 8)) * dense.total
    assert state_bytes(dense, Parallel(data=4, sharding=Sharding.NONE), BF16) == 18 * dense.total
    spread = Parallel(tensor=2, data=32, expert=16)
    held = one.experts * Fraction(1, 16) * (6 + Fraction(12, 64 // 16))
    dense_held = Fraction(one.shared - one.whole, 2) + one.whole + one.norms
    assert state_bytes(one, spread, BF16) == held + dense_held * (6 + Fraction(12, 32))
    assert state_bytes(dense, Parallel(), PRECISIONS["fp32"]) == 16 * dense.total


def test_operations_are_two_a_token_and_parameter() -> None:
    training, tokens = Training(4096, 2), 8192
    products = sum(operations_of(layer_products(LLAMA_8B, training, Parallel(), DENSE)) for _ in range(LLAMA_8B.layers))
    products += operations_of(head_products(LLAMA_8B, training, Parallel()))
    without_embedding = active_parameters(LLAMA_8B) - LLAMA_8B.vocabulary * LLAMA_8B.hidden
    norms = (2 * LLAMA_8B.layers + 1) * LLAMA_8B.hidden
    assert products == 2 * tokens * (without_embedding - norms)
    # Causal attention: two products of 2·s²/2·h each.
    assert attention_operations(LLAMA_8B, training, Parallel(), False) == 2 * 2 * 4096**2 * LLAMA_8B.hidden
    shared = operations_of(layer_products(LLAMA_8B, training, Parallel(tensor=4, context=2, data=3), DENSE))
    assert shared * 8 == operations_of(layer_products(LLAMA_8B, training, Parallel(), DENSE))


def test_operations_of_what_trains_alone() -> None:
    """A forward, a backward of two such, of attention alone too; frozen weights have no gradient, those first no B."""
    training = Training(4096)
    layers, head = (
        32 * operations_of(layer_products(LLAMA_8B, training, Parallel(), DENSE)),
        operations_of(head_products(LLAMA_8B, training, Parallel())),
    )
    attention = 32 * attention_operations(LLAMA_8B, training, Parallel(), False)
    assert model_operations(LLAMA_8B, training) == 3 * (layers + attention + head)

    def frozen(*names: str) -> Fraction:
        return model_operations(LLAMA_8B, replace(training, frozen=frozenset(names)))

    assert frozen("head") == 3 * (layers + attention) + 2 * head
    assert frozen("layer") == 2 * layers + 3 * (attention + head)
    assert frozen("embedding") == 3 * (layers + attention + head)
    assert frozen("embedding", "layer") == layers + attention + 3 * head
    # Queries, keys, values and their projection, each by rank 16: a sixteenth of a 256-wide product.
    adapters = 32 * 16 * 2 * 4096 * ((4096 + 6144) + 2 * 4096)
    lora = replace(training, lora=Lora(16, ("linear_qkv", "linear_proj")))
    assert model_operations(LLAMA_8B, lora) == 2 * (layers + head) + 3 * (attention + adapters)


def test_attention_over_stored_scores_is_two_products() -> None:
    """All of the sequence at the rate of products, and masked; FlashAttention half of it at a rate of its own."""
    where = Parallel(), replace(RATES, memory_rate=3e12)
    half = 2 * 2 * 4096**2 / 2 * LLAMA_8B.hidden
    ends = 1 + 700 / 4096  # of each block of queries
    own = ends * half / 4e14
    assert attention_seconds(LLAMA_8B, Training(4096), *where) == pytest.approx((own, 2.5 * own))
    stored = attention_seconds(LLAMA_8B, Training(4096, flash=False), *where)
    assert stored == pytest.approx((2 * half / 5e14, 4 * half / 5e14))


def test_attention_of_small_heads_and_short_sequences_is_slower() -> None:
    """As many operations: twice as many heads of half the size; and half the sequence for twice as many sequences."""
    where = Parallel(), replace(RATES, memory_rate=3e12)
    narrow = replace(LLAMA_8B, attention=Attention(64, 8, 64))

    def forward(shape: Shape, sequence: int, size: int = 1) -> float:
        return attention_seconds(shape, Training(sequence, size), *where)[0]

    assert forward(narrow, 4096) / forward(LLAMA_8B, 4096) == pytest.approx((1 + 55 / 64) / (1 + 55 / 128))
    # Half as many operations, of which each takes longer.
    assert 2 * forward(LLAMA_8B, 512, 2) / forward(LLAMA_8B, 1024) == pytest.approx((1 + 700 / 512) / (1 + 700 / 1024))


def test_a_backward_launches_twice_as_many_kernels() -> None:
    """A pass that takes less than launching its kernels takes as long as that."""
    slow = replace(RATES, dense_launch=0.5, memory_rate=None, data=None)
    for split in (False, True):
        training = Training(128, weight_split=split)
        layer = next(one for one in derive(LLAMA_8B, training, Parallel(), slow).layers if one.name == "layer")
        assert (layer.forward, layer.full_backward) == (500, 1000)


def test_formats_with_a_scale_of_a_whole_tensor_read_it_once_more() -> None:
    """For its largest number: FP8 and NVFP4, whose blocks have scales too, but not MXFP8."""
    training, cast = Training(4096), 4096 * (4096 + 14336 + 4096)

    def moved(dtype: str) -> float:
        return layer_traffic(LLAMA_8B, replace(training, precision=PRECISIONS[dtype]), Parallel(), DENSE)

    assert moved("fp8") == moved("nvfp4") == moved("mxfp8") + 2 * cast == moved("bf16") + 6 * cast


def test_experts_tokens_are_converted_by_kernels_of_their_own_unless_their_products_do_it() -> None:
    """In narrow formats alone; the activation function is in the products' kernels then too."""
    shape = Shape(94, 4096, 151936, Attention(64, 4, 128), 1536, 0, Experts(128, 8, 0, 1536))

    def moved(dtype: str, fused: bool) -> float:
        training = Training(4096, precision=PRECISIONS[dtype], fused_experts=fused)
        return layer_traffic(shape, training, Parallel(expert=8, data=8), MOE)

    inside, numbers = 8 * 1536, 4096 * 8 * (4096 + 1536)
    assert moved("bf16", False) - moved("bf16", True) == 4096 * 3 * inside * 2
    # Of what attention's products read one; the router reads its own in 16 bits.
    assert moved("mxfp8", False) - moved("bf16", False) == numbers * 20 + 4096 * 4096 * 4
    assert moved("mxfp8", True) - moved("bf16", True) == 4096 * (1 + 8) * 4096 * 4


def test_layers_with_experts_wait_for_their_host() -> None:
    """In each direction, whatever the kernels take, and dense layers not at all."""
    training, parallel = Training(4096), Parallel(expert=8, data=8)
    usual, waits = (
        {one.name: one for one in derive(DEEPSEEK_V3, training, parallel, replace(RATES, moe_wait=wait)).layers}
        for wait in (0, 0.002)
    )
    assert waits["dense"] == usual["dense"]
    own = waits["moe"].forward - usual["moe"].forward, waits["moe"].full_backward - usual["moe"].full_backward
    assert own == pytest.approx((2, 2), abs=0.02)


def test_what_devices_of_a_stage_exchange() -> None:
    training, sbh = Training(4096), 4096 * 7168 * 2
    for moe in (False, True):  # the shared expert is divided as a dense block is
        assert tensor_bytes(DEEPSEEK_V3, training, Parallel(tensor=4), LayerKind(moe)) == 4 * sbh * Fraction(3, 4)
    assert tensor_bytes(DEEPSEEK_V3, training, Parallel(data=64), DENSE) == 0
    assert DEEPSEEK_V3.experts is not None
    routed = replace(DEEPSEEK_V3, experts=replace(DEEPSEEK_V3.experts, shared=0))
    assert tensor_bytes(routed, training, Parallel(tensor=4), MOE) == 2 * sbh * Fraction(3, 4)
    rates = Hardware(1e15, Fraction(0), 1e10, expert=1e10)
    found = expert_seconds(DEEPSEEK_V3, training, Parallel(data=64, expert=64), rates)
    assert found == pytest.approx(2 * 8 * sbh * 63 / 64 / 1e10)
    assert expert_seconds(DEEPSEEK_V3, training, Parallel(data=64), rates) == 0
    # 128 heads with keys of 128 + 64 numbers and values of 128; 8 heads of 128 each, of which tensor devices have some.
    assert context_bytes(DEEPSEEK_V3, training, Parallel(context=4)) == 3 * 1024 * 128 * (192 + 128) * 2
    for tensor, held in ((1, 8), (4, 2), (16, 1)):
        sent = context_bytes(LLAMA_8B, training, Parallel(tensor=tensor, context=2))
        assert sent == 2048 * held * 256 * 2


@pytest.mark.parametrize("gigabytes", [1, 10, 1000])
def test_of_the_ring_of_keys_and_values_counts_what_attention_does_not_hide_and_what_it_slows(gigabytes: int) -> None:
    training, parallel = Training(4096), Parallel(context=4)
    layers = [
        next(layer for layer in derive(LLAMA_8B, training, parallel, hardware).layers if layer.name == "layer")
        for hardware in (Hardware(1e14, Fraction(10**12), 1e10, context=rate)
        for rate in (None, gigabytes * 1e9))
    ]  # fmt: skip
    sent = context_bytes(LLAMA_8B, training, parallel) / (gigabytes * 10**9) * 1000
    attention = attention_operations(LLAMA_8B, training, parallel, False) / 10**14 * 1000
    for name, factor, again in (("forward", 1, 1), ("backward", 2, Fraction(5, 2))):
        without, counted = (getattr(layer, name) for layer in layers)
        behind = again * attention * Fraction(3, 4)
        slowed = Fraction(189, 1189) * factor * sent
        assert counted - without == pytest.approx(float(max(factor * sent - behind, slowed)), 0.01, 0.005)


def test_a_ring_reaches_what_was_measured_of_one() -> None:
    """Of zhuzilin/ring-flash-attention's zigzag ring: 8 H800, Llama 3 8B's heads, 8,192 tokens a device, behind NVLink.

    Without a ring a forward takes 1 / 73.9 s, both passes 1 / 19.3 s; with one the rates are 85.2 and 90.2 % of these.
    """
    hardware = Hardware(1e15, Fraction(10**12), 1e10, context=160e9, multiprocessors=132, memory_rate=2.8e12)
    where, forward, both = (LLAMA_8B, Training(65536), Parallel(context=8), hardware), 1 / 73.9, 1 / 19.3
    first = ring_seconds(*where, forward, False)
    second = ring_seconds(*where, both - forward, True)
    assert forward / (forward + first) == pytest.approx(0.852, rel=0.1)
    assert both / (both + first + second) == pytest.approx(0.902, rel=0.06)


def test_steps_of_a_ring_have_fewer_tiles_and_sum_their_results() -> None:
    bare = Hardware(1e15, Fraction(10**12), 1e10)
    where = LLAMA_8B, Training(4096), Parallel(tensor=8, context=4)
    assert ring_seconds(*where, bare, 1.0, False) == 0
    # Of 4 heads 8 tiles of 1,024 queries and 4 of 512, on 132 multiprocessors.
    waves = ring_seconds(*where, replace(bare, multiprocessors=132), 1.0, False)
    assert waves == pytest.approx((132 / 32 + 132 / 16) / 2 - 1)
    summed = 4 * 128 * 32 * 128 * 10
    memory = replace(bare, memory_rate=1e12)
    assert ring_seconds(*where, memory, 1.0, False) == pytest.approx(summed / 1e12)
    # Gradients of queries, and of the one head of keys and values that a device has of 8.
    assert ring_seconds(*where, memory, 1.0, True) == pytest.approx(summed * (1 + 2 * 8 / 32) / 1e12)
    assert ring_seconds(LLAMA_8B, Training(4096), Parallel(tensor=8), memory, 1.0, True) == 0


def test_of_the_same_layout_sharded_parameters_are_no_faster() -> None:
    """Weights that every micro-batch gathers slow the passes that hide them."""
    hardware = Hardware(
        5e14, Fraction(10**12), 4e10, tensor=2e11, data=9e10, memory_rate=2.8e12, multiprocessors=132, data_hidden=1
    )
    times = []
    for sharding in (Sharding.OPTIMIZER, Sharding.GRADIENTS, Sharding.PARAMETERS):
        found = derive(LLAMA_70B, Training(4096), Parallel(tensor=4, data=4, sharding=sharding), hardware)
        layer = next(one for one in found.layers if one.name == "layer")
        times.append(layer.forward + layer.full_backward)
    assert times == sorted(times) and times[0] < times[2]


MODEL: dict[str, Any] = {
    "devices": 4,
    "microbatches": 8,
    "model": {
        "layers": 8,
        "hidden": 1024,
        "vocabulary": 32000,
        "attention": {"heads": 16, "kv_heads": 4},
        "ffn": 2816,
        "dense_layers": 2,
        "experts": {"number": 16, "per_token": 2, "shared": 1, "ffn": 704},
        "mtp_layers": 1,
        "sequence": 2048,
        "parallel": {"tensor": 2, "expert": 8, "data": 4},
    },
    "hardware": {
        "sustained_tflops": 200, "memory": 80, "reserved": 8, "pipeline_bandwidth": 25, "tensor_bandwidth": 150,
        "expert_bandwidth": 40,
    },
}  # fmt: skip


def changed(**paths: object) -> dict[str, Any]:
    """The file with values at `a__b` changed; None takes a key away."""
    document = copy.deepcopy(MODEL)
    for path, value in paths.items():
        *sections, key = path.split("__")
        here = document
        for section in sections:
            here = here[section]
        if value is None:
            here.pop(key)
        else:
            here[key] = value
    return document


def test_a_file_with_a_model_has_its_layers() -> None:
    plan = plan_problem_from(MODEL)
    layers = {layer.name: layer for layer in plan.model.layers}
    assert [(name, layer.count) for name, layer in layers.items()] == [
        ("embedding", 1),
        ("dense", 2),
        ("moe", 6),
        ("mtp", 1),
        ("head", 1),
    ]
    assert plan.cluster.capacity == (72,) * 4
    assert (plan.time_unit, plan.cluster.memory_unit) == ("ms", "GiB")
    # 2048 tokens of 1024 numbers of 2 bytes, half of them a device, at 25 GB/s: 0.08389 ms.
    assert plan.cluster.transfer == Fraction(839, 10000)
    moe = layers["moe"]
    assert moe.weight is not None and moe.forward < moe.backward
    assert moe.mode("full").time == moe.forward and 0 < moe.mode("full").keeps < Fraction(1, 10)
    assert layers["head"].recompute == () and layers["embedding"].forward == 0
    assert plan.assumptions


def test_choices_of_a_file_reach_the_layers() -> None:
    def moe(**paths: object) -> Any:
        return next(one for one in plan_problem_from(changed(**paths)).model.layers if one.name == "moe")

    usual = moe()
    assert moe(hardware__hidden_share=1).forward < usual.forward
    assert moe(hardware__sustained_tflops=400).weight == pytest.approx(float(usual.weight) / 2, abs=0.01)
    whole = moe(model__weight_split=False)
    assert whole.weight is None and whole.backward == pytest.approx(float(usual.backward + usual.weight), abs=0.02)
    stored = moe(model__flash=False)
    assert stored.activation > usual.activation and stored.backward < usual.backward
    assert stored.mode("selective").keeps < 1 and stored.mode("selective").time < stored.mode("full").time
    assert moe(model__dropout=True).activation > usual.activation
    assert moe(model__dtype="fp32").activation > usual.activation
    assert plan_problem_from(changed() | {"transfer": 5}).cluster.transfer == 5


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "no hardware": (changed(hardware=None), 1),
    "no model": ({**changed(model=None), "layers": [{"name": "a", "forward": 1, "backward": 2, "count": 4}]}, 1),
    "layers too": (changed(layers=[{"name": "a", "forward": 1, "backward": 2}]), 1),
    "memory too": (changed(memory={"capacity": 3}), 1),
    "another unit": (changed(time_unit="s"), 1),
    "nothing known": ({"devices": 2, "microbatches": 2, "model": {}, "hardware": {}}, 9),
    "a rate of nothing": (changed(hardware__pipeline_bandwidth=0), 1),
    "more reserved than there is": (changed(hardware__reserved=81), 1),
    "heads": (changed(model__attention={"heads": 24}, model__parallel=None), 1),
    "kv heads": (changed(model__attention={"heads": 16, "kv_heads": 5}), 1),
    "half a latent": (changed(model__attention={"heads": 16, "kv_rank": 5}), 3),
    "two kinds of attention": (
        changed(
            model__attention={"heads": 16, "kv_heads": 4, "kv_rank": 8, "key_size": 8, "rope_size": 8, "value_size": 8}
        ),
        1,
    ),
    "more experts a token than there are": (changed(model__experts__per_token=17), 1),
    "groups that do not divide": (changed(model__experts__groups=3, model__experts__groups_per_token=3), 1),
    "more groups a token than there are": (changed(model__experts__groups_per_token=2), 1),
    "groups too small for a token": (changed(model__experts__groups=16), 1),
    "dense layers": (changed(model__dense_layers=9), 1),
    "no experts": (changed(model__experts=None, model__parallel=None), 1),
    "no width": (changed(model__ffn=None), 1),
    "experts on no devices": (changed(model__parallel__expert=3), 1),
    "experts that do not divide": (changed(model__parallel={"expert": 32, "data": 32}), 1),
    "heads that do not divide": (changed(model__parallel__tensor=32), 1),
    "no bandwidth": (changed(hardware__expert_bandwidth=None, hardware__tensor_bandwidth=None), 2),
    "sizes beyond all hardware": (changed(model__hidden=16 * 10**9, model__sequence=10**9), 1),
    "more layers than any model has": (changed(model__layers=10**11), 1),
    "an unknown key": (changed(model__hiden=3, hardware__memory="much"), 2),
}


@in_turn("case", WRONG)
def test_mistakes_of_model_and_hardware_are_a_line_each(case: str) -> None:
    document, mistakes = WRONG[case]
    with pytest.raises(BadInput) as refusal:
        plan_problem_from(document)
    assert len(refusal.value.mistakes) == mistakes, refusal.value


@in_turn("every", range(1, 6))
@in_turn("dense", range(8))
def test_which_layers_have_experts(dense: int, every: int) -> None:
    shape = Shape(7, 8, 8, Attention(1, 1, 8), 8, dense, Experts(4, 1, 0, 8), experts_every=every)
    has = [at >= dense and (at - dense) % every == 0 for at in range(7)]
    assert [kind.moe for kind, number in shape.runs for _ in range(number)] == has
    assert all(number and one != after for (one, number), (after, _) in pairwise(shape.runs))


def test_a_token_goes_to_a_node_once() -> None:
    """EP 32 over 4 nodes, 8 experts a token: 3 * (1 - (3/4)**8) other nodes, where copies would be 8 * 3/4."""
    training, parallel = Training(4096), Parallel(data=32, expert=32)
    shape = Shape(94, 4096, 151936, Attention(64, 4, 128), 1536, 0, Experts(128, 8, 0, 1536))
    rates = Hardware(1e15, Fraction(0), 1e10, expert=1e10, node=8, expert_in_node=1e12, once_a_node=True)
    hidden = 4096 * 4096 * 2
    found = expert_seconds(shape, training, parallel, rates)
    assert found == pytest.approx(2 * hidden * 3 * (1 - 0.75**8) / 1e10)
    assert expert_seconds(shape, training, parallel, replace(rates, once_a_node=False)) == pytest.approx(
        2 * hidden * 8 * 0.75 / 1e10
    )
    # Inside one node only its links count: a device gets a token once for all its experts there.
    inside, each = (
        expert_seconds(shape, training, Parallel(data=8, expert=8), replace(rates, once_a_node=once))
        for once in (True, False)
    )
    assert inside == pytest.approx(2 * hidden * 7 * (1 - (7 / 8) ** 8) / 1e12)
    assert each == pytest.approx(2 * hidden * 8 * (7 / 8) / 1e12)


def test_parts_that_the_experts_of_a_token_are_in_are_those_of_random_choices() -> None:
    """Counted over drawn tokens; consecutive experts and one group for a token are exact."""
    draw = Random(7)
    for groups, chosen in ((1, 1), (8, 4), (8, 2), (32, 1)):
        experts = Experts(256, 8, 0, 2048, groups, chosen)
        size = 256 // groups
        for parts in (1, 2, 8, 16, 64):
            found = []
            for _ in range(2000):
                own = draw.sample(range(groups), chosen)
                used = draw.sample([one * size + at for one in own for at in range(size)], 8)
                found.append(len({one * parts // 256 for one in used}))
            assert experts.reached(parts) == pytest.approx(mean(found), rel=0.08), (groups, chosen, parts)
    assert Experts(256, 8, 0, 2048, 32, 1).reached(32) == 1


def test_tiles_and_waves() -> None:
    """One tile more than a wave takes two waves; without multiprocessors all sizes run at one rate."""
    rates = Hardware(1e14, Fraction(0), 1e10, multiprocessors=100)

    def seconds(rows: int, columns: int, hardware: Hardware = rates) -> float:
        return product_seconds(Product(Fraction(rows), Fraction(columns), Fraction(4096)), hardware, 2)

    full = 2 * 1280 * 2560 * 4096 / 1e14
    assert seconds(1280, 2560) == pytest.approx(full)
    assert seconds(1281, 2560) > 1.5 * full
    assert seconds(1281, 2560, replace(rates, multiprocessors=0)) == pytest.approx(full * 1281 / 1280)
    # Results are written when their sums are complete; few tokens move the weights all the same.
    quick = replace(rates, memory_rate=1e12)
    assert seconds(1280, 2560, quick) == pytest.approx(full + 1280 * 2560 * 2 / 1e12)
    slow = replace(rates, memory_rate=1e11)
    assert seconds(1, 4096, slow) == pytest.approx((4096 + 4096 * 4096 + 4096) * 2 / 1e11)


def test_sharing_divides_what_each_device_holds() -> None:
    dense = layer_parameters(LLAMA_8B, DENSE)
    held = {sharing: state_bytes(dense, Parallel(data=8, sharding=sharing), BF16) / dense.total for sharing in Sharding}
    assert held == {
        Sharding.NONE: 18,
        Sharding.OPTIMIZER: 6 + Fraction(12, 8),
        Sharding.GRADIENTS: 2 + Fraction(16, 8),
        Sharding.PARAMETERS: Fraction(18, 8),
    }


def test_modules_that_are_recomputed() -> None:
    """Ways are what is asked for, of layers that have the modules; each saves what its module holds."""
    training = Training(4096, modes=("full", "layernorm+mla_up_proj", "moe_act", "mlp"))
    layers = {one.name: one for one in derive(DEEPSEEK_V3, training, Parallel(data=64, expert=64), RATES).layers}
    assert [way.name for way in layers["moe"].recompute] == ["full", "layernorm+mla_up_proj", "moe_act"]
    assert [way.name for way in layers["dense"].recompute] == ["full", "layernorm+mla_up_proj", "mlp"]
    act = layers["moe"].mode("moe_act")
    assert (1 - act.keeps) * layers["moe"].activation * 2**30 == pytest.approx(4096 * 8 * 2048 * 2, rel=0.02)
    assert 0 < act.time < layers["moe"].mode("layernorm+mla_up_proj").time < layers["moe"].forward


def test_a_module_saves_no_more_where_all_of_it_is_recomputed() -> None:
    modes = ("moe", "moe+moe_act", "shared_experts+moe", "moe+layernorm")
    layers = derive(DEEPSEEK_V3, Training(4096, modes=modes), Parallel(data=64, expert=64), RATES).layers
    moe = next(one for one in layers if one.name == "moe")
    assert moe.mode("moe").keeps == moe.mode("moe+moe_act").keeps == moe.mode("shared_experts+moe").keeps
    assert moe.mode("moe+layernorm").keeps < moe.mode("moe").keeps


def test_what_is_kept_without_sequence_parallelism() -> None:
    """s·b·h·(10 + 24/t): arXiv 2205.05198, equation 2, without scores."""
    s, b, h = 2048, 2, GPT_3.hidden
    found = layer_activation(GPT_3, Training(s, b, dropout=True), Parallel(tensor=8, sequence=False), DENSE)
    assert found.total == s * b * h * (10 + Fraction(24, 8))


def test_narrow_products_take_less_time_and_memory() -> None:
    parallel, slow = Parallel(data=64, expert=64), replace(RATES, flops_8bit=None, flops_4bit=None)

    def layer(dtype: str, rates: Hardware) -> Any:
        layers = derive(DEEPSEEK_V3, Training(4096, precision=PRECISIONS[dtype]), parallel, rates).layers
        return next(one for one in layers if one.name == "moe")

    usual = layer("bf16", RATES)
    for dtype in ("fp8", "mxfp8", "nvfp4"):
        assert layer(dtype, RATES).forward < usual.forward and layer(dtype, RATES).activation < usual.activation
        assert layer(dtype, slow).weight >= layer(dtype, RATES).weight


RATES = Hardware(
    5e14, Fraction(80 * 2**30), 4e10, expert=3e10, node=8, expert_in_node=3e11, once_a_node=True, data=4e10,
    flops_8bit=9e14, flops_4bit=9e14, attention_flops=4e14, multiprocessors=132, memory_rate=3e12, moe_launch=1e-3, data_hidden=1,
)  # fmt: skip


def test_gradients_run_behind_the_last_backward() -> None:
    training, parallel = Training(4096), Parallel(data=8)
    hidden = derive(LLAMA_8B, training, parallel, replace(RATES, data_hidden=1)).reduction["layer"]
    shown = derive(LLAMA_8B, training, parallel, replace(RATES, data_hidden=0)).reduction["layer"]
    layer = next(one for one in derive(LLAMA_8B, training, parallel, RATES).layers if one.name == "layer")
    sent = layer_parameters(LLAMA_8B, DENSE).total * Fraction(7, 8) / Fraction(4 * 10**10) * 1000
    assert shown == pytest.approx(float(6 * sent), rel=1e-3)
    assert hidden == pytest.approx(
        float(max(0, 4 * sent - layer.full_backward) + max(0, 2 * sent - layer.forward)), rel=0.01, abs=0.01
    )


def test_weight_gradients_are_added_to() -> None:
    """A product of W reads and writes 4-byte gradients; kernels after it move 4 bytes more; FSDP writes 2 alone."""
    product, rates = [Product(Fraction(2048), Fraction(4096), Fraction(4096))], replace(RATES, multiprocessors=0)
    training = Training(2048)

    def added(parallel: Parallel, fused: bool = True) -> float:
        own = replace(training, fused_accumulation=fused)
        return products_seconds(product, own, parallel, rates)[2] - 2 * 2048 * 4096**2 / rates.flops

    numbers = 4096**2 / 3e12
    assert added(Parallel()) == pytest.approx(8 * numbers)
    assert added(Parallel(), False) == pytest.approx(12 * numbers)
    assert added(Parallel(data=8, sharding=Sharding.PARAMETERS)) == pytest.approx(2 * numbers)


def test_kernels_that_are_not_fused_keep_and_move_more() -> None:
    """Of a normalization a copy in 32 bits, of a gated activation function its own result."""
    s, b, h = 4096, 2, LLAMA_8B.hidden

    def layer(norms: bool = True, gated: bool = True) -> Any:
        training = Training(s, b, fused_norms=norms, fused_activation=gated)
        found = derive(LLAMA_8B, training, Parallel(), RATES).layers
        kept = layer_activation(LLAMA_8B, training, Parallel(), DENSE).total
        return next(one for one in found if one.name == "layer").forward, kept

    (time, kept), norms, gated = layer(), layer(norms=False), layer(gated=False)
    assert norms[1] - kept == s * b * h * 2 * 4 and gated[1] - kept == s * b * LLAMA_8B.ffn * 2
    for found, moved in ((norms[0], 2 * 14 * h), (gated[0], 2 * LLAMA_8B.ffn)):
        assert float(found - time) == pytest.approx(s * b * moved * 2 / 3e12 * 1000, abs=0.01)


def test_recomputation_that_stops_early_leaves_out_the_last_product() -> None:
    """And one of a dense layer's four exchanges; a layer with experts runs all of it again, as Megatron does."""
    training, rates = Training(4096), replace(RATES, tensor=1e11)
    for shape, parallel in ((LLAMA_8B, Parallel(tensor=4)), (DEEPSEEK_V3, Parallel(expert=8, data=8))):
        again = {}
        for stops in (False, True):
            layers = derive(shape, replace(training, early_stop=stops), parallel, rates).layers
            again[stops] = {one.name: one.recompute[0].time for one in layers if one.recompute}
        name = "layer" if shape.experts is None else "dense"
        down = layer_products(shape, training, parallel, DENSE)[-1]
        assert (down.columns, down.inner) == (shape.hidden, shape.ffn // parallel.tensor)
        exchanged = float(tensor_bytes(shape, training, parallel, DENSE)) / 4 / 1e11
        saved = products_seconds([down], training, parallel, rates)[0] + exchanged
        assert float(again[False][name] - again[True][name]) == pytest.approx(saved * 1000, abs=0.01)
        assert {key for key in again[True] if again[True][key] != again[False][key]} == {name}


def test_pytorch_s_checkpoints_stop_early() -> None:
    """Of a block of 1, 4 and 4 units of products the reentrant checkpoint runs all 9 again, the other one 5."""
    torch = pytest.importorskip("torch")
    counter, checkpoint = pytest.importorskip("torch.utils.flop_counter"), pytest.importorskip("torch.utils.checkpoint")
    h, tokens = 16, 8
    weights = [torch.ones(*sizes, requires_grad=True) for sizes in ((h, h), (h, 4 * h), (4 * h, h))]

    def block(x: Any) -> Any:
        x = x + torch.tanh(x @ weights[0])
        return x + torch.tanh(x @ weights[1]) @ weights[2]

    def units(**options: Any) -> float:
        x = torch.ones(tokens, h, requires_grad=True)
        with counter.FlopCounterMode(display=False) as counted:
            (checkpoint.checkpoint(block, x, **options) if options else block(x)).sum().backward()
        return float(counted.get_total_flops()) / (2 * tokens * h * h)

    assert (units(), units(use_reentrant=True), units(use_reentrant=False)) == (27, 27 + 9, 27 + 5)


def test_a_normalization_that_is_recomputed_frees_all_that_it_keeps() -> None:
    for norms in (True, False):
        own = layer_activation(LLAMA_8B, Training(4096, fused_norms=norms), Parallel(), DENSE)
        assert own.modules["layernorm"] == 4096 * 2 * 4096 * (2 if norms else 2 + 4)


def test_an_all_reduce_ends_before_the_optimizer_s_step() -> None:
    """No forward hides a part of it, as it does of weights that are gathered; nor these, where none may."""
    training, none = Training(4096), Parallel(data=8, sharding=Sharding.NONE)
    layer = next(one for one in derive(LLAMA_8B, training, none, RATES).layers if one.name == "layer")
    sent = float(layer_parameters(LLAMA_8B, DENSE).total * Fraction(7, 8)) / 4e10 * 1000
    back, forward = float(layer.full_backward), float(layer.forward)

    def shown(parallel: Parallel = none, of_forward: float | None = None) -> float:
        return float(derive(LLAMA_8B, training, parallel, replace(RATES, gather_hidden=of_forward)).reduction["layer"])

    assert shown() == pytest.approx(8 * sent - back, rel=0.01) and 8 * sent > back + forward
    sharded = replace(none, sharding=Sharding.OPTIMIZER)
    for of_forward in (0, 0.25):
        expected = max(0, 4 * sent - back) + max(0, 2 * sent - of_forward * forward)
        assert shown(sharded, of_forward) == pytest.approx(expected, rel=0.01, abs=0.01)
        assert shown(of_forward=of_forward) == shown()


def test_an_assumption_says_what_replicas_exchange_and_when() -> None:
    def said(sharding: Sharding, of_backward: float, of_forward: float | None = None) -> str:
        hardware = replace(RATES, data_hidden=of_backward, gather_hidden=of_forward)
        lines = derive(LLAMA_8B, Training(4096), Parallel(data=8, sharding=sharding), hardware).assumptions
        return next(line for line in lines if line.startswith("data parallel: "))

    assert said(Sharding.NONE, 0.5, 1).endswith("last backward, behind 50 % of a backward")
    assert said(Sharding.NONE, 0, 1).endswith("last backward, not hidden behind computation")
    assert said(Sharding.OPTIMIZER, 0).endswith("last backward, not hidden behind computation")
    assert said(Sharding.OPTIMIZER, 1).endswith("behind 100 % of a backward and 100 % of a forward")
    assert said(Sharding.OPTIMIZER, 1, 0).endswith("behind 100 % of a backward")
    assert said(Sharding.OPTIMIZER, 0, 0.25).endswith("behind 25 % of a forward")
    assert said(Sharding.GRADIENTS, 1, 0).endswith(
        "and weights gathered after a device's last backward, not hidden behind computation"
    )
    assert "last" not in said(Sharding.PARAMETERS, 1) and "weights are gathered" in said(Sharding.PARAMETERS, 1)
    assert "weights" not in said(Sharding.NONE, 1)


def test_sharded_gradients_are_reduced_by_every_micro_batch() -> None:
    """On slow links a backward takes as long as the reduction; where all of it is hidden nothing is gained either."""
    training, own = Training(2048, 1), Parallel(data=8)
    for data in (1e9, 1e15):
        rates = replace(RATES, data=data)
        once, each = (
            derive(LLAMA_8B, training, replace(own, sharding=sharding), rates)
            for sharding in (Sharding.OPTIMIZER, Sharding.GRADIENTS)
        )
        layers = [next(one for one in found.layers if one.name == "layer") for found in (once, each)]
        assert layers[1].forward == layers[0].forward and layers[1].full_backward >= layers[0].full_backward
        parameters = layer_parameters(LLAMA_8B, DENSE)
        reduced = float(parameters.total * 2 * Fraction(7, 8)) / data * 1000
        expected = max(float(layers[0].full_backward), reduced)
        assert float(layers[1].full_backward) == pytest.approx(expected, abs=0.1)


def test_room_is_less_what_runs_for_a_moment() -> None:
    """A layer that is recomputed, weights that are gathered; the loss's logits on the stage of the head alone."""
    training, parallel = Training(4096, 2, modes=()), Parallel(tensor=4, data=2)
    none = derive(LLAMA_8B, training, parallel, RATES)
    again = derive(LLAMA_8B, replace(training, modes=("full",)), parallel, RATES)
    kept = layer_activation(LLAMA_8B, training, parallel, DENSE)
    assert none.capacity - again.capacity == pytest.approx(float(kept.total - kept.layer_input) / 2**30, abs=0.02)
    shared = derive(LLAMA_8B, training, replace(parallel, sharding=Sharding.PARAMETERS), RATES)
    parameters = layer_parameters(LLAMA_8B, DENSE)
    own = max(Fraction(parameters.shared, 4) + parameters.norms, Fraction(LLAMA_8B.vocabulary * 4096, 4) + 4096)
    assert none.capacity - shared.capacity == pytest.approx(float(own * 3 * 2) / 2**30, abs=0.02)
    logits, usual = 4096 * 2 * LLAMA_8B.vocabulary, {}
    for loss, each in ((Loss.FUSED, 0), (Loss.PARALLEL, 6), (Loss.GATHERED, 14)):
        head = derive(LLAMA_8B, replace(training, loss=loss), parallel, RATES).layers[-1]
        usual[loss] = head.memory
        size = 2 if loss is Loss.FUSED else 4
        share = 1 if loss is Loss.GATHERED else 4
        hidden = 2 * 4096 * 2 * 4096 * 2 // 4
        assert head.activation == pytest.approx((hidden + logits * size / share) / 2**30, rel=0.01)
        working = RATES.memory / 2**30 - none.capacity
        assert head.memory - usual[Loss.FUSED] == pytest.approx(
            max(0, logits * each / share / 2**30 - float(working)), abs=0.02
        )
