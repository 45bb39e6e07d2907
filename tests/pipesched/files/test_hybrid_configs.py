"""Hybrid models from configurations: parameters of published ones to the last, and which layers have what."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.measured.table import CONFIGS
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.hugging_face import from_hugging_face
from pipesched.files.model_configs.layouts import layouts_of
from pipesched.files.model_configs.megatron_arguments import from_megatron
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_document, plan_text
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.plan_file import plan_problem_from
from pipesched.files.plans import derived_layers
from pipesched.layers.derived.parameters import active_parameters, mtp_parameters, total_parameters
from pipesched.layers.derived.shape import Shape

# Parameters of transformers 5.23's own classes, made of these configurations on PyTorch's meta device, with the
# routers' biases, which are buffers there; multi-token prediction apart.
COUNTED = {
    "nemotron-h-8b": 8100852736, "nemotron-h-47b": 46791554816, "nemotron-h-56b": 56324350464,
    "nemotron-3-nano": 31577940288, "nemotron-3-super": 120668707840, "qwen3-next-80b-a3b": 79674391296,
    "kimi-linear-48b-a3b": 49122681728, "granite-4.0-h-small": 32207337984, "granite-4.0-h-tiny": 6939037248,
    "jamba-v0.1": 51570323328, "jamba-1.5-large": 398555145696, "falcon-h1-7b": 7585513568,
    "falcon-h1-34b": 33642221312, "bamba-9b": 9780235392, "minimax-text-01": 456089655296,
}  # fmt: skip
# GiB of the published files of weights, in 16 bits, where they have no multi-token prediction.
PUBLISHED_GIB = {"granite-4.0-h-small": 59.99, "granite-4.0-h-tiny": 12.93}
GDN = {
    "head_dim": 256, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_value_head_dim": 128,
    "linear_num_key_heads": 16, "linear_num_value_heads": 32, "num_attention_heads": 16, "vocab_size": 248320,
    "tie_word_embeddings": False,
}  # fmt: skip
MAMBA = {"mamba_n_heads": 64, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4}
# The same of configurations that no file here has: Qwen 3.5 in the sizes of its classes, and small ones of options.
MADE: dict[str, tuple[dict[str, Any], int]] = {
    "Qwen3.5 9B": (
        GDN | {"model_type": "qwen3_5_text", "num_hidden_layers": 32, "hidden_size": 4096, "intermediate_size": 12288,
               "num_key_value_heads": 4}, 8953803264,
    ),
    "Qwen3.5 35B-A3B": (
        GDN | {"model_type": "qwen3_5_moe", "text_config": GDN | {
            "model_type": "qwen3_5_moe_text", "num_hidden_layers": 40, "hidden_size": 2048, "num_key_value_heads": 2,
            "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512, "num_experts": 256,
            "num_experts_per_tok": 8}}, 34660610688,
    ),
    "Granite without experts": (
        MAMBA | {"model_type": "granitemoehybrid", "hidden_size": 2048, "num_hidden_layers": 8, "num_attention_heads": 32,
                 "num_key_value_heads": 8, "vocab_size": 1000, "num_local_experts": 0, "num_experts_per_tok": 0,
                 "intermediate_size": 1024, "shared_intermediate_size": 8192, "layer_types": ["mamba"] * 7 + ["attention"],
                 "tie_word_embeddings": True}, 596152384,
    ),
    "Falcon-H1 with a normalization": (
        {"model_type": "falcon_h1", "hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1000, "intermediate_size": 1024, "mamba_d_ssm": 1024,
         "mamba_n_heads": 16, "mamba_d_head": 64, "mamba_d_state": 64, "mamba_n_groups": 2, "mamba_rms_norm": True,
         "tie_word_embeddings": False}, 12871056,
    ),
    "Jamba without experts": (
        {"model_type": "jamba", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 4, "vocab_size": 1000, "intermediate_size": 512, "num_experts": 1,
         "num_experts_per_tok": 1, "mamba_dt_rank": "auto", "mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2,
         "attn_layer_period": 4, "attn_layer_offset": 2, "tie_word_embeddings": False}, 6682144,
    ),
    "MiniMax by its list of types": (
        {"model_type": "minimax", "hidden_size": 256, "num_hidden_layers": 8, "num_attention_heads": 8,
         "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 1000, "intermediate_size": 512, "num_local_experts": 4,
         "num_experts_per_tok": 2, "block_size": 64, "layer_types": (["linear_attention"] * 3 + ["full_attention"]) * 2,
         "tie_word_embeddings": False}, 17698048,
    ),
}  # fmt: skip
MEGATRON = {
    "hidden_size": "4096", "num_attention_heads": "32", "num_query_groups": "8", "kv_channels": "128",
    "group_query_attention": True, "ffn_hidden_size": "21504", "vocab_size": "131072", "seq_length": "8192",
    "untie_embeddings_and_output_weights": True,
}  # fmt: skip
NANO = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"


@pytest.fixture
def shapes(monkeypatch: pytest.MonkeyPatch) -> list[Shape]:
    """The shapes that plans were derived from, in their order."""
    found: list[Shape] = []
    derive = derived_layers.derive

    def kept(shape: Shape, *more: Any) -> Any:
        found.append(shape)
        return derive(shape, *more)

    monkeypatch.setattr(derived_layers, "derive", kept)
    return found


def layers(config: ModelConfig, **more: Any) -> list[str]:
    wanted = Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"], **more)
    return [layer.name for layer in plan_problem_from(plan_document(config, wanted)).model.sequence][1:-1]


@pytest.mark.parametrize("name", COUNTED)
def test_the_parameters_are_those_of_the_model_s_own_classes(name: str, shapes: list[Shape]) -> None:
    layers(read_config(str(CONFIGS / f"{name}.json")))
    assert total_parameters(shapes[0]) == COUNTED[name]
    if name in PUBLISHED_GIB:
        assert total_parameters(shapes[0]) * 2 / 2**30 == pytest.approx(PUBLISHED_GIB[name], abs=0.01)


@pytest.mark.parametrize("name", MADE)
def test_the_parameters_of_other_sizes_and_options(name: str, shapes: list[Shape]) -> None:
    document, counted = MADE[name]
    layers(from_hugging_face(document, "config.json"))
    assert total_parameters(shapes[0]) == counted


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("nemotron-3-super", 12.7), ("qwen3-next-80b-a3b", 3.9), ("granite-4.0-h-small", 8.8), ("jamba-v0.1", 12.1),
        ("kimi-linear-48b-a3b", 3.5), ("jamba-1.5-large", 94),
    ],
)  # fmt: skip
def test_a_token_uses_the_published_part(name: str, billions: float, shapes: list[Shape]) -> None:
    layers(read_config(str(CONFIGS / f"{name}.json")))
    assert active_parameters(shapes[0]) / 1e9 == pytest.approx(billions, rel=0.02)


def test_multi_token_prediction_of_nemotron_is_an_attention_and_experts(shapes: list[Shape]) -> None:
    """Its published file of weights has 5,884,651,520 bytes: 16 bits, biases of the router 32; and no final norm."""
    layers(read_config(str(CONFIGS / "nemotron-3-super.json")))
    assert (mtp_parameters(shapes[0]).total - 512) * 2 + 512 * 4 == pytest.approx(5_884_651_520, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("qwen3-next-80b-a3b", ["moe-linear", "moe-linear", "moe-linear", "moe"]),
        ("kimi-linear-48b-a3b", ["dense-linear", "moe-linear", "moe-linear", "moe", "moe-linear"]),
        ("granite-4.0-h-tiny", [*["moe-linear"] * 5, "moe", "moe-linear"]),
        ("jamba-v0.1", ["dense-linear", "moe-linear", "dense-linear", "moe-linear", "dense", "moe-linear"]),
        ("falcon-h1-7b", ["layer"] * 44),
        ("bamba-9b", [*["layer-linear"] * 9, "layer", "layer-linear"]),
        ("minimax-text-01", [*["moe-linear"] * 7, "moe", "moe-linear"]),
        ("nemotron-h-8b", ["mamba", "mlp", "mamba", "mlp", "mamba", "mlp", "mamba", "attention", "mlp"]),
        ("nemotron-3-nano", ["mamba", "moe", "mamba", "moe", "mamba", "attention", "moe"]),
    ],
)
def test_layers_are_in_the_order_of_the_configuration(name: str, first: list[str]) -> None:
    config = read_config(str(CONFIGS / f"{name}.json"))
    found = layers(config)
    assert found[: len(first)] == first
    assert len(found) == config.model["layers"] + config.model.get("mtp_layers", 0)


def test_lists_of_types_say_the_same_as_a_pattern() -> None:
    document = {
        "model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "head_dim": 16,
        "mamba_num_heads": 8, "intermediate_size": 128, "n_routed_experts": 8, "num_experts_per_tok": 2,
        "moe_intermediate_size": 32, "moe_shared_expert_intermediate_size": 64,
    }  # fmt: skip
    pattern = from_hugging_face(document | {"hybrid_override_pattern": "ME*-", "num_hidden_layers": 4}, "c").model
    types = ["linear_attention", "moe", "full_attention", "mlp"]
    assert from_hugging_face(document | {"layers_block_type": types}, "c").model == pattern
    assert (
        from_hugging_face(document | {"layers_block_type": ["mamba", "moe", "attention", "mlp"]}, "c").model == pattern
    )
    assert (pattern["layers"], pattern["pattern"], pattern["experts"]["shared"]) == (4, "ME*-", 2)


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"model_type": "nemotron_h", "mamba_num_heads": 8, "layers_block_type": ["x"] * 8}, "found 'x'; allowed: mamba,"),
        ({"model_type": "nemotron_h", "mamba_num_heads": 8}, "layers_block_type: found 'none'"),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "M*"}, "mamba_num_heads: missing"),
        ({"model_type": "qwen3_next", "layer_types": ["full_attention"] * 3}, "layer_types: found 3; allowed: one for"),
        (
            {"model_type": "granitemoehybrid", "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 100,
             "shared_intermediate_size": 150},
            "shared_intermediate_size: found 150; allowed: a multiple of 100",
        ),
        (
            {"model_type": "jamba", "num_experts": 4, "num_experts_per_tok": 2, "expert_layer_period": 2,
             "expert_layer_offset": 5},
            "num_hidden_layers",
        ),
        ({"model_type": "kimi_linear", "linear_attn_config": {"num_heads": "x"}}, "linear_attn_config: num_heads: found"),
    ],
)  # fmt: skip
def test_mistakes_of_hybrid_configurations(changes: dict[str, Any], mistake: str) -> None:
    usual = {"hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4, "vocab_size": 100,
             "intermediate_size": 128}  # fmt: skip
    if mistake == "num_hidden_layers":  # no layer at all has experts: all are dense
        assert from_hugging_face(usual | changes, "config.json").model["dense_layers"] == 8
        return
    with pytest.raises(BadInput) as caught:
        from_hugging_face(usual | changes, "config.json")
    assert any(mistake in line for line in caught.value.mistakes)


def test_megatron_s_pattern_is_the_published_model(shapes: list[Shape]) -> None:
    given = MEGATRON | {
        "mamba_num_heads": "128",
        "mamba_state_dim": "128",
        "mamba_head_dim": "64",
        "is_hybrid_model": True,
    }
    found = from_megatron(given | {"hybrid_override_pattern": NANO}, "args.sh")
    assert found.notes == ()
    assert found.model["pattern"] == NANO and found.model["mixer"]["key_heads"] == 8
    layers(found)
    assert total_parameters(shapes[0]) == COUNTED["nemotron-h-8b"]
    staged = from_megatron(given | {"hybrid_layer_pattern": f"{NANO[:20]}|{NANO[20:]}"}, "args.sh")
    assert staged.model == found.model


def test_megatron_s_experts_in_a_pattern(shapes: list[Shape]) -> None:
    """Nemotron 3 Super, with experts of a latent and two layers of multi-token prediction."""
    super_ = read_config(str(CONFIGS / "nemotron-3-super.json")).model
    given = MEGATRON | {
        "num_query_groups": "2", "hybrid_layer_pattern": super_["pattern"] + "/*E/*E", "mamba_num_heads": "128",
        "num_experts": "512", "moe_router_topk": "22", "moe_ffn_hidden_size": "2688", "moe_latent_size": "1024",
        "moe_shared_expert_intermediate_size": "5376", "moe_router_enable_expert_bias": True,
    }  # fmt: skip
    found = from_megatron(given, "args.sh").model
    assert (found["mtp_layers"], found["experts"]) == (2, super_["experts"])
    apart = from_megatron(
        given | {"hybrid_layer_pattern": super_["pattern"], "mtp_num_layers": 2, "mtp_hybrid_override_pattern": "*E"},
        "a",
    )
    assert apart.model == found
    layers(from_megatron(given, "args.sh"))
    assert total_parameters(shapes[0]) == COUNTED["nemotron-3-super"]
    with pytest.raises(BadInput, match="num_experts: missing"):
        from_megatron(MEGATRON | {"hybrid_layer_pattern": "ME*E"}, "args.sh")


@pytest.mark.parametrize(
    "variant", [{"experimental_attention_variant": "gated_delta_net"}, {"linear_attention_type": "gated_delta_net"}]
)
@pytest.mark.parametrize("freq", ["4", "([1]*3+[0])*12", [1, 1, 1, 0] * 12])
def test_megatron_s_gated_delta_nets_are_qwen3_next(variant: dict[str, str], freq: Any, shapes: list[Shape]) -> None:
    given = {
        "num_layers": "48", "hidden_size": "2048", "num_attention_heads": "16", "num_query_groups": "2",
        "group_query_attention": True, "kv_channels": "256", "ffn_hidden_size": "5120", "swiglu": True,
        "vocab_size": "151936", "num_experts": "512", "moe_router_topk": "10", "moe_ffn_hidden_size": "512",
        "moe_shared_expert_intermediate_size": "512", "moe_shared_expert_gate": True, "attention_output_gate": True,
        "qk_layernorm": True, "linear_attention_freq": freq, "linear_num_value_heads": "32",
        "untie_embeddings_and_output_weights": True,
    }  # fmt: skip
    found = from_megatron(given | variant, "args.sh")
    assert found.notes == () and found.model["mixer"]["attention_layers"] == 4
    assert layers(found)[:4] == ["moe-linear", "moe-linear", "moe-linear", "moe"]
    # All but the gains of queries and keys, which Megatron's arguments count for no model.
    assert COUNTED["qwen3-next-80b-a3b"] - total_parameters(shapes[0]) == 12 * 2 * 256
    with pytest.raises(BadInput, match="linear_attention_freq: found '\\[1, 0\\]'; allowed: a whole number"):
        from_megatron(given | variant | {"linear_attention_freq": "[1, 0]"}, "args.sh")


def test_a_pattern_in_another_order_needs_no_mixer() -> None:
    found = from_megatron(MEGATRON | {"hybrid_layer_pattern": "*-*E*E-*-", "num_experts": "8"}, "args.sh")
    assert "mixer" not in found.model
    assert layers(found) == [*["attention", "mlp"], *["attention", "moe"] * 2, "mlp", "attention", "mlp"]
    text = plan_text(found, Wanted(2, 8, "h100-80gb", DEVICES["h100-80gb"]), "args.sh")
    assert plan_problem_from(read_yaml(text, "plan")).model.most_stages == 11


def test_multi_token_prediction_without_experts_has_a_block(shapes: list[Shape]) -> None:
    given = MEGATRON | {"hybrid_layer_pattern": "M*M*/*-", "mamba_num_heads": "32"}
    config = from_megatron(given, "args.sh")
    assert config.model["ffn"] == 21504
    assert layers(config) == ["mamba", "attention", "mamba", "attention", "mtp"]
    assert mtp_parameters(shapes[0]).total > 2 * 4096 * 21504
    alone = from_megatron(given | {"hybrid_layer_pattern": "M*M*"}, "args.sh")
    assert "ffn" not in alone.model
    document = {
        "model_type": "nemotron_h", "hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "head_dim": 16,
        "mamba_num_heads": 8, "intermediate_size": 128, "hybrid_override_pattern": "M*", "num_nextn_predict_layers": 1,
    }  # fmt: skip
    assert layers(from_hugging_face(document, "config.json")) == ["mamba", "attention", "mtp"]


@pytest.mark.parametrize("kind", ["jamba", "granitemoehybrid", "qwen3_next", "falcon_h1", "llama"])
def test_too_many_layers_are_refused_before_there_is_a_list_of_them(kind: str) -> None:
    usual = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 100, "intermediate_size": 128}
    document = usual | {
        "model_type": kind,
        "num_hidden_layers": 10**12,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
    }
    with pytest.raises(BadInput) as caught:
        from_hugging_face(document, "config.json")
    assert caught.value.mistakes == ("config.json: number of layers: found 1000000000000; allowed: up to 10000",)


@pytest.mark.parametrize("more", [{"num_layers": 10**12}, {"hybrid_layer_pattern": "M*" * 5001}])
def test_so_they_are_in_megatron_s_arguments(more: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"number of layers: found [0-9]+; allowed: up to 10000"):
        from_megatron(MEGATRON | {"linear_attention_type": "gdn", "linear_attention_freq": 4} | more, "args.sh")


def test_layouts_divide_the_heads_of_a_mixer() -> None:
    """Granite's groups are one, so that there is no tensor parallelism; Qwen3-Next has 16 heads of keys."""
    granite, qwen = (
        read_config(str(CONFIGS / f"{name}.json")) for name in ("granite-4.0-h-small", "qwen3-next-80b-a3b")
    )
    assert {one.tensor for one in layouts_of(granite, 16, 64, 4096, {})} == {1}
    assert {one.tensor for one in layouts_of(qwen, 16, 64, 4096, {})} == {1, 2, 4, 8}
    jamba = read_config(str(CONFIGS / "jamba-v0.1.json"))
    assert {one.tensor for one in layouts_of(jamba, 16, 64, 4096, {})} == {1, 2, 4, 8}
