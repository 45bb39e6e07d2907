"""Mixers: their scans, traffic and memory, and how tensor and context parallelism divide them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from pipesched.errors import BadInput
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.derived.exchange import mixer_bytes, tensor_bytes
from pipesched.layers.derived.kernels import SCAN, layer_traffic, scan_seconds
from pipesched.layers.derived.mixer import Mixing
from pipesched.layers.derived.mixer_kinds import KINDS, MixerSizes, mixer_of, usual_chunk
from pipesched.layers.derived.model_operations import model_operations
from pipesched.layers.derived.operations import layer_products, operations_of, scan_operations
from pipesched.layers.derived.parameters import layer_parameters
from pipesched.layers.derived.shape import Attention, Hardware, LayerKind, Parallel, Shape, Training

HARDWARE = Hardware(flops=5e14, memory=Fraction(80 * 2**30), pipeline=5e10, attention_flops=4e14, multiprocessors=132)
MIXES = LayerKind(False, attends=False, mixes=True)
DOCUMENT: dict[str, Any] = {
    "devices": 2,
    "microbatches": 4,
    "placement": "linear",
    "model": {
        "layers": 6, "hidden": 1024, "vocabulary": 32000, "attention": {"heads": 8}, "ffn": 4096, "sequence": 4096,
        "mixer": {"kind": "mamba2", "heads": 32, "key_heads": 8, "key_size": 128, "value_size": 64},
    },
    "hardware": {"sustained_tflops": 400, "memory": 80, "pipeline_bandwidth": 40, "memory_bandwidth": 2500},
}  # fmt: skip


def sizes(kind: str, **more: Any) -> MixerSizes:
    one_group = kind == "mamba1"
    heads, value = (2048, 1) if one_group else (16, 128)
    keys = 1 if one_group else 8 if kind in ("mamba2", "gated_delta") else 16
    usual = MixerSizes(1024, heads, keys, 16 if one_group else 128, value, 4, usual_chunk(kind), 64, True)
    return replace(usual, **more)


def shape(kind: str, **more: Any) -> Shape:
    mixing = Mixing(mixer_of(kind, sizes(kind, **more)))
    return Shape(6, 1024, 32000, Attention(8, 8, 128), 4096, 6, mixing=mixing)


def model(**mixer: Any) -> dict[str, Any]:
    own = DOCUMENT["model"] | {"mixer": DOCUMENT["model"]["mixer"] | mixer}
    return DOCUMENT | {"model": own}


def names(document: dict[str, Any]) -> list[str]:
    return [layer.name for layer in plan_problem_from(document).model.sequence][1:-1]


def pairs(chunk: int) -> int:
    """Pairs of a token and one of its chunk, itself or before it."""
    return sum(at + 1 for at in range(chunk))


def test_the_scan_of_mamba_2_is_its_four_products() -> None:
    """Counted chunk by chunk: scores of each group over all pairs, values over those before, states made and read."""
    of = sizes("mamba2")
    scan, chunk = mixer_of("mamba2", of).scan, of.chunk
    counted = of.key_heads * 2 * chunk**2 * of.key_size + of.heads * chunk**2 * of.value_size
    counted += of.heads * 2 * (2 * chunk * of.key_size * of.value_size)
    assert scan.operations * chunk == counted
    # Half of all pairs, as exactly as a kernel's tiles are.
    assert chunk**2 / 2 == pytest.approx(pairs(chunk), rel=0.01)
    # Megatron-LM counts 7 operations a number of the state: the two products of states are 4 of these.
    assert scan.operations > 4 * of.values * of.key_size


def test_the_delta_rule_is_counted_as_its_products_in_a_chunk() -> None:
    of = sizes("gated_delta", key_size=3, value_size=5, chunk=4, heads=2, key_heads=1)
    chunk, key, value = 4, 3, 5
    products = [
        (chunk, key, chunk), (chunk, key, chunk), (chunk, chunk, key), (chunk, chunk, value),  # scores, their inverse's
        (chunk, key, value), (key, chunk, value), (chunk, key, value), (chunk, chunk, value),  # state, and result
    ]  # fmt: skip
    counted = sum(2 * rows * inner * columns for rows, inner, columns in products) + Fraction(2 * chunk**3, 3)
    scan = mixer_of("gated_delta", of).scan
    assert scan.operations * chunk == 2 * counted
    assert scan.chained * chunk == 2 * sum(2 * rows * inner * columns for rows, inner, columns in products[4:6])


@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_with_tokens_and_not_with_the_sequence(kind: str) -> None:
    own = shape(kind)
    short, long = (scan_operations(own, Training(tokens), Parallel()) for tokens in (4096, 65536))
    assert long == 16 * short > 0
    near = [layer_traffic(own, Training(tokens), Parallel(), MIXES) for tokens in (4096, 65536)]
    assert near[1] == pytest.approx(16 * near[0])


@pytest.mark.parametrize("kind", KINDS)
def test_tensor_parallelism_divides_products_and_scans(kind: str) -> None:
    """All but the low-rank products, which every device does for its own tokens, so that they come to the same."""
    own, training = shape(kind), Training(4096)
    whole, divided = (layer_products(own, training, Parallel(tensor=size), MIXES) for size in (1, 4))
    assert operations_of(divided) * 4 == operations_of(whole)
    assert scan_operations(own, training, Parallel(tensor=4)) * 4 == scan_operations(own, training, Parallel())
    parallel = Parallel(tensor=4)
    assert tensor_bytes(own, training, parallel, MIXES) == tensor_bytes(own, training, parallel, LayerKind(False))


def test_few_heads_leave_multiprocessors_without_work() -> None:
    """With tensor parallelism there are fewer tiles of the state than multiprocessors, and the chain takes as long."""
    own = shape("gated_delta")
    alone, eight = (scan_seconds(own, Training(4096), Parallel(tensor=size), HARDWARE)[0] for size in (1, 8))
    assert alone / 8 < eight < alone
    many = replace(HARDWARE, multiprocessors=0)
    alone, eight = (scan_seconds(own, Training(4096), Parallel(tensor=size), many)[0] for size in (1, 8))
    assert eight == pytest.approx(alone / 8)


def test_scans_run_at_their_own_rate_if_it_is_given() -> None:
    own = shape("mamba2")
    usual = scan_seconds(own, Training(4096), Parallel(), HARDWARE)
    fast = scan_seconds(own, Training(4096), Parallel(), replace(HARDWARE, scan_flops=4e14))
    assert usual == pytest.approx(tuple(each / SCAN.share for each in fast))
    assert 2 < usual[1] / usual[0] < 3  # both gradients, and some of the forward again


def test_a_scan_takes_what_was_measured() -> None:
    """Mamba 2's kernels without a gate, as vLLM's pull request 27299 measured them on an H100: 77 to 79 ns a token."""
    of = sizes("mamba2", hidden=4096, heads=128, key_heads=1, value_size=64, chunk=256)
    mixer, device = mixer_of("mamba2", of), DEVICES["h100-80gb"]
    own = replace(shape("mamba2"), mixing=Mixing(mixer))
    hardware = Hardware(
        flops=1.0, memory=Fraction(0), pipeline=1.0, attention_flops=device.tflops * device.attention * 1e12
    )
    # Without the convolution and its result, the gate, and the normalization.
    moved = float(mixer.moved) - 2 * (of.values + 2 * of.keys) - of.values - 2 * of.values
    taken = scan_seconds(own, Training(8192), Parallel(), hardware)[0] / 8192
    taken += 2 * moved / (device.memory_bandwidth * device.memory_share * 1e9)
    assert 77e-9 < taken < 79.5e-9


def test_context_parallelism_exchanges_the_sequence_for_heads() -> None:
    own, training = shape("mamba2"), Training(4096)
    mixer = mixer_of("mamba2", sizes("mamba2"))
    inner = 2 * 2048 + 2 * 1024 + 16
    assert mixer.sent == inner and mixer.output == 2048
    assert mixer_bytes(own, training, Parallel()) == 0
    sent = mixer_bytes(own, training, Parallel(context=4, tensor=2))
    assert sent == Fraction(4096, 8) * (inner + 2048) * Fraction(3, 4) * 2


def test_operations_of_the_model_have_those_of_scans() -> None:
    own, training = shape("gated_delta"), Training(4096)
    scan = scan_operations(own, training, Parallel())
    without = replace(own.mixing.mixer, scan=own.mixing.mixer.scan._replace(operations=Fraction(0)))  # type: ignore[union-attr]
    bare = replace(own, mixing=Mixing(without))
    assert model_operations(own, training) - model_operations(bare, training) == 6 * 3 * scan


def test_a_layer_with_both_has_the_parameters_of_both() -> None:
    own = shape("mamba2")
    both = layer_parameters(own, LayerKind(False, mixes=True)).total
    mixes, attends = layer_parameters(own, MIXES), layer_parameters(own, LayerKind(False))
    block = layer_parameters(own, LayerKind(False, attends=False)).total
    assert both == mixes.total + attends.total - block - 1024  # one normalization before both


@pytest.mark.parametrize(
    ("mixer", "full"),
    [
        ({}, set()), ({"attention_layers": 3}, {2, 5}), ({"attention_layers": [0, 4]}, {0, 4}),
        ({"parallel": True}, {*range(6)}),
    ],
)  # fmt: skip
def test_which_layers_have_attention(mixer: dict[str, Any], full: set[int]) -> None:
    assert names(model(**mixer)) == ["layer" if at in full else "layer-linear" for at in range(6)]


def test_layers_of_one_part() -> None:
    document = model()
    own = document["model"] | {"pattern": "M-M*E-", "experts": {"number": 8, "per_token": 2, "ffn": 512}}
    plan = plan_problem_from(document | {"model": own})
    assert [layer.name for layer in plan.model.sequence][1:-1] == ["mamba", "mlp", "mamba", "attention", "moe", "mlp"]
    assert any("2 of 6 layers have Mamba 2" in line for line in plan.assumptions)
    assert any("of no other scan or" in line for line in plan.assumptions)
    kinds = {layer.name: layer for layer in plan.model.layers}
    whole = {layer.name: layer for layer in plan_problem_from(model(attention_layers=3)).model.layers}
    together = kinds["mamba"].forward + kinds["mlp"].forward
    assert float(together) == pytest.approx(float(whole["layer-linear"].forward), rel=0.02)
    memory = float(kinds["mamba"].memory + kinds["mlp"].memory)
    assert memory == pytest.approx(float(whole["layer-linear"].memory), rel=0.05)


def test_latent_attention_of_a_pattern_has_its_name() -> None:
    """By which Megatron's settings write + for it."""
    latent = {"heads": 8, "kv_rank": 64, "key_size": 64, "rope_size": 32, "value_size": 64}
    assert names(DOCUMENT | {"model": model()["model"] | {"attention": latent, "pattern": "M-M*M-"}})[3] == "mla"


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"mixer": {"kind": "mamba1", "heads": 32, "key_size": 16}}, "model.mixer.rank: missing"),
        ({"mixer": {"kind": "mamba1", "heads": 32, "key_size": 16, "rank": 4, "key_heads": 2}}, "key_heads: found 2 with"),
        ({"mixer": {"kind": "mamba2", "heads": 32, "key_size": 16, "key_heads": 5}}, "found 5; allowed: a divisor of"),
        ({"mixer": {"kind": "lightning", "heads": 32, "key_size": 16, "key_heads": 8}}, "allowed: as many as heads, 32"),
        ({"mixer": {"kind": "mamba2", "heads": 32}}, "model.mixer.key_size: missing"),
        ({"mixer": {"kind": "mamba3", "heads": 32, "key_size": 16}}, "model.mixer.kind: found 'mamba3'"),
        ({"mixer": {"kind": "mamba2", "heads": 32, "key_size": 16, "attention_layers": [6]}}, "found layer 6; allowed: up"),
        ({"mixer": {"kind": "mamba2", "heads": 32, "key_size": 16, "attention_layers": 0}}, "found 0; allowed: a whole"),
        (
            {"mixer": {"kind": "mamba2", "heads": 32, "key_size": 16, "attention_layers": 2, "parallel": True}},
            "attention_layers: found with parallel",
        ),
        ({"pattern": "M-M-M"}, "model.pattern: found 5 letters; allowed: one for each of the 6 layers"),
        ({"pattern": "M-M-MX"}, "model.pattern: found 'X'; allowed: the letters"),
        ({"pattern": "G-G-G*"}, "found G without a mixer of its kind; allowed: with model.mixer gated_delta"),
        ({"pattern": "*-*-*-"}, "found a mixer and no M or G"),
        ({"pattern": "M-M-ME"}, "model.pattern: found E without experts"),
        ({"pattern": "M-M-M*", "ffn": None}, "model.ffn: missing"),
        ({"pattern": "MMM*MM"}, "model.ffn: found with a pattern without -; allowed: without, or with - or mtp_layers"),
        ({"pattern": "M-M-M*", "dense_layers": 6}, "model.dense_layers: found with pattern"),
        (
            {"pattern": "M-M-M*", "mixer": DOCUMENT["model"]["mixer"] | {"attention_layers": 3}},
            "model.mixer.attention_layers: found with pattern",
        ),
        (
            {"pattern": "M-M-M*", "mixer": DOCUMENT["model"]["mixer"] | {"attention_layers": 0}},
            "model.mixer.attention_layers: found with pattern",
        ),
        ({"pattern": "MM*MM*", "mtp_layers": 1, "ffn": None}, "model.ffn: missing; it is required with - in the pattern, or"),
        ({"pattern": "M-M-M*", "experts": {"number": 8, "per_token": 2, "ffn": 512}}, "experts: found with a pattern without"),
        (
            {"experts": {"number": 8, "per_token": 2, "ffn": 512, "shared_gate": True}},
            "model.experts.shared_gate: found without shared",
        ),
        (
            {"mixer": {"kind": "mamba2", "heads": 32, "key_size": 16, "attention_layers": [1, 4, 1]}},
            "model.mixer.attention_layers: found layer 1 twice; allowed: each layer once",
        ),
        ({"parallel": {"tensor": 8, "context": 8}}, "found tensor * context 64; allowed: a divisor of the mixer's 32"),
        ({"attention": {"heads": 16}, "parallel": {"tensor": 16}}, "allowed: a divisor of the mixer's 8 heads of keys"),
    ],
)  # fmt: skip
def test_mistakes_are_a_line_each(changes: dict[str, Any], mistake: str) -> None:
    own = {key: value for key, value in (DOCUMENT["model"] | changes).items() if value is not None}
    with pytest.raises(BadInput) as caught:
        plan_problem_from(DOCUMENT | {"model": own, "hardware": DOCUMENT["hardware"] | {"tensor_bandwidth": 100}})
    assert len(caught.value.mistakes) == 1
    assert mistake in caught.value.mistakes[0]


def test_layers_are_frozen_by_the_name_that_they_have_with_attention() -> None:
    document = model(attention_layers=3)
    plan = plan_problem_from(document | {"model": document["model"] | {"frozen": ["embedding", "layer"]}})
    assert all(layer.forward_only for layer in plan.model.layers if layer.name.startswith("layer"))


def test_working_space_is_that_of_a_pattern_s_blocks() -> None:
    """Three times the width of the block (gate, up and their product) and two hidden states, of 16 bits a token."""
    experts = {"number": 8, "per_token": 2, "ffn": 512}

    def space(pattern: str, ffn: int = 2**18) -> Fraction:
        own = model()["model"] | {"pattern": pattern, "recompute": [], "ffn": ffn, "experts": experts}
        unused = [key for letter, key in (("E", "experts"), ("-", "ffn")) if letter not in pattern]
        own = {key: value for key, value in own.items() if key not in unused}
        return plan_problem_from(DOCUMENT | {"model": own}).cluster.capacity[0]

    assert space("M-M*M-", 512) - space("M-M*M-") == pytest.approx(
        Fraction(4096 * 2 * 3 * (2**18 - 512), 2**30), abs=0.1
    )
    # The experts' products are narrower than the block.
    assert space("M-EM*-") <= space("M-M*M-")
    assert space("M*EM*E") > space("M-EM*E") + 5


@pytest.mark.parametrize("pattern", ["M*-MMM", None])
def test_recomputation_that_stops_early_leaves_out_one_exchange(pattern: str | None) -> None:
    """Of two around each part; all of a mixer's exchange of the sequence is before its last product."""
    own = shape("mamba2")
    parallel = Parallel(tensor=4, context=2)

    def left_out(rate: float, context: float) -> dict[str, float]:
        document = model(key_heads=8)["model"] | {"early_stop": True, "parallel": {"tensor": 4, "context": 2}}
        hardware = DOCUMENT["hardware"] | {"tensor_bandwidth": rate, "context_bandwidth": context}
        named = {} if pattern is None else {"pattern": pattern}
        plan = plan_problem_from(DOCUMENT | {"model": document | named, "hardware": hardware})
        return {
            layer.name: float(layer.forward - layer.recompute[0].time) for layer in plan.model.layers if layer.recompute
        }

    slow, fast, far = left_out(1, 1000), left_out(1000, 1000), left_out(1, 1)
    one = float(tensor_bytes(own, Training(4096), parallel, LayerKind(False, attends=False, mixes=True)) / 4) / 1e6
    for name in slow:
        assert slow[name] - fast[name] == pytest.approx(one * 0.999, rel=0.02)
        assert far[name] == pytest.approx(slow[name], rel=0.02)


@pytest.mark.parametrize(
    ("keys", "found", "allowed"),
    [
        ({"frozen": ["embedding", "mamba"]}, "mamba", "without embedding or mamba, or with attention, mlp, or layers by"),
        ({"frozen": ["mamba"], "lora": {"rank": 8}}, "mamba", "without mamba, or with attention, mlp, or layers by hand"),
    ],
)  # fmt: skip
def test_a_pattern_frozen_in_part_says_what_can_be_done(keys: dict[str, Any], found: str, allowed: str) -> None:
    own = model()["model"] | {"pattern": "M*-MM*"}
    with pytest.raises(BadInput) as caught:
        plan_problem_from(DOCUMENT | {"model": own | keys})
    assert len(caught.value.mistakes) == 1
    line = caught.value.mistakes[0]
    assert f"model.frozen: found {found}, of layers before attention" in line and f"allowed: {allowed}" in line
    names = keys["frozen"]
    for follows in ([one for one in names if one != found], [*names, "attention", "mlp"]):
        frozen = {"frozen": follows} if follows else {}
        plan_problem_from(DOCUMENT | {"model": own | {key: keys[key] for key in keys if key != "frozen"} | frozen})
    if "lora" not in keys:
        trained = plan_problem_from(DOCUMENT | {"model": own | {"frozen": [found]}})
        assert not any(layer.forward_only for layer in trained.model.layers)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("key", "value"), [("convolution", 7), ("chunk", 32), ("rank", 24), ("normalized", False)])
def test_a_key_changes_a_mixer_or_is_refused(kind: str, key: str, value: Any) -> None:
    """Each of the keys that only some kinds have, with each kind."""
    given = {"kind": kind, "heads": 2048 if kind == "mamba1" else 32, "key_size": 64}
    given |= {"rank": 8} if kind == "mamba1" else {}
    made, usual = (mixer_of(kind, sizes(kind, **more)) for more in ({key: value}, {}))
    document = DOCUMENT | {"model": DOCUMENT["model"] | {"mixer": given | {key: value}}}
    if made != usual:
        plan_problem_from(document)
        return
    with pytest.raises(BadInput) as caught:
        plan_problem_from(document)
    shown = "false" if value is False else value
    assert len(caught.value.mistakes) == 1
    assert f"model.mixer.{key}: found {shown} with {kind}; allowed: without, or with" in caught.value.mistakes[0]


def test_a_key_may_say_what_a_kind_is() -> None:
    usual = {"kind": "lightning", "heads": 16, "key_size": 64}
    plans = (DOCUMENT | {"model": DOCUMENT["model"] | {"mixer": usual | more}} for more in ({}, {"convolution": 0}))
    assert len({plan_problem_from(document).model.layers for document in plans}) == 1
