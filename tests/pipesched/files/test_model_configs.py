"""Plan files from model configurations: the parameters of published models, three formats, and every mistake."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from commands.main import main
from pipesched.errors import BadInput
from pipesched.files.exact_numbers import read_yaml
from pipesched.files.model_configs.hardware_table import DEVICES
from pipesched.files.model_configs.hugging_face import FAMILIES, REFUSED, from_hugging_face
from pipesched.files.model_configs.megatron_arguments import arguments_of, flattened, from_megatron
from pipesched.files.model_configs.model_config import ModelConfig
from pipesched.files.model_configs.plan_of_config import Wanted, plan_document, plan_text, sizes_of
from pipesched.files.model_configs.read_config import read_config
from pipesched.files.model_configs.torchtitan import FLAVORS, from_torchtitan
from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem
from tests.support.in_turn import in_turn
from tests.support.published_models import PUBLISHED, hf

H100 = DEVICES["h100-80gb"]


def plan_of(config: ModelConfig, devices: int = 4, **more: Any) -> PlanProblem:
    text = plan_text(config, Wanted(devices, 8, "h100-80gb", H100, **more), "config.json")
    return plan_problem_from(read_yaml(text, "plan"), "plan")


def billions(plan: PlanProblem) -> float:
    return float(plan.assumptions[0].removeprefix("model: ").partition(" ")[0])


@in_turn("name", PUBLISHED)
def test_the_parameters_are_those_published(name: str) -> None:
    document, published = PUBLISHED[name]
    assert billions(plan_of(from_hugging_face(document, "config.json"))) == pytest.approx(
        published, rel=0.015, abs=0.006
    )


@pytest.mark.parametrize(
    ("settings", "sizes", "data"),
    [
        ({"expert": 4, "data": 8}, {}, 8),
        ({"expert": 8, "data": 2}, {}, 8),
        ({"expert": 6, "tensor": 4}, {}, 2),
        ({"expert": 4, "data": 8}, {"data": 2}, 2),
    ],
)
def test_the_data_size_of_a_configuration_stays_where_it_has_room_for_the_experts(
    settings: dict[str, int], sizes: dict[str, int], data: int
) -> None:
    """A configuration with 4 devices for experts and a data size of 8 was read as one with a data size of 4."""
    config = ModelConfig("m", {"layers": 4}, settings)
    assert sizes_of(config, Wanted(2, 8, "h100-80gb", H100, sizes=sizes))["data"] == data


def test_every_assumption_is_in_the_file() -> None:
    config = from_hugging_face(PUBLISHED["DeepSeek-V3"][0] | {"max_position_embeddings": 2048}, "config.json")
    text = plan_text(config, Wanted(16, 64, "h100-80gb", H100, sizes={"expert": 64}), "config.json")
    assert "sequence: 2048" in text and text.count("assumed") >= 7
    # Experts need 64 devices, so each stage has so many data-parallel ones.
    assert "parallel: {tensor: 1, context: 1, expert: 64, data: 64}" in text
    assert (
        f"expert_bandwidth: {50 * H100.expert_share:.4g}" in text
        and "dispatch: node" in text
        and "mtp_layers: 1" in text
    )
    given = plan_text(config, Wanted(16, 64, "h100-80gb", H100, 4096, 2, {"tensor": 8}, None), "config.json")
    assert (
        "sequence: 4096" in given
        and f"tensor_bandwidth: {450 * H100.tensor_share:.4g}" in given
        and "microbatch_size: 2" in given
    )
    sliding = plan_text(from_hugging_face(PUBLISHED["Gemma 3 27B"][0], ""), Wanted(4, 8, "h100-80gb", H100), "c")
    assert "window: 1024, full_layers: 6" in sliding and "# gemma3: the text model alone" in sliding


@in_turn("name", PUBLISHED)
def test_the_document_is_the_text_as_read(name: str) -> None:
    config = from_hugging_face(PUBLISHED[name][0], "config.json")
    sizes = {"tensor": 8, "context": 2, "data": 4, "expert": 8}
    training = {"dtype": "fp8", "recompute": ["norms+activation"], "gradient_bytes": 2, "sequence": False}
    for more in ({}, {"sizes": sizes, "training": training, "rates": {"reserved": 2.5, "new": "40%"}}):
        wanted = Wanted(4, 8, "h100-80gb", H100, **more)  # type: ignore[arg-type]
        assert plan_document(config, wanted) == read_yaml(plan_text(config, wanted, "config.json"), "plan")


SCRIPT = """#!/bin/bash
NUM_LAYERS=${NUM_LAYERS:-32}
HIDDEN=4096  # of Llama 3 8B
MODEL_ARGS=(
    --num-layers 32 --hidden-size $HIDDEN
    --ffn-hidden-size=14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8   # grouped
    --swiglu
    --untie-embeddings-and-output-weights
    --seq-length 8192 \\
    --vocab-size 128256
    --micro-batch-size 2
)
torchrun pretrain_gpt.py "${MODEL_ARGS[@]}" --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4
"""


def test_megatron_s_arguments() -> None:
    config = from_megatron(arguments_of(SCRIPT), "args.sh")
    assert config.settings == {"sequence": 8192, "microbatch_size": 2, "devices": 4, "tensor": 2}
    assert billions(plan_of(config)) == pytest.approx(8.03, rel=0.001)
    as_string = SCRIPT.replace("MODEL_ARGS=(", 'MODEL_ARGS="').replace(
        "    --micro-batch-size 2\n)", '--micro-batch-size 2"'
    )
    assert arguments_of(as_string) == arguments_of(SCRIPT)
    assert arguments_of("ARGS='--num-layers 32 --swiglu'") == {"num_layers": "32", "swiglu": True}
    experts = {
        "model": {"num_layers": 61, "hidden_size": 7168, "ffn_hidden_size": 18432, "num_attention_heads": 128,
                  "gated_linear_unit": True, "share_embeddings_and_output_weights": False, "vocab_size": 129280,
                  "num_moe_experts": 256, "moe_router_topk": 8, "moe_ffn_hidden_size": 2048,
                  "moe_shared_expert_intermediate_size": 2048, "moe_layer_freq": [0] * 3 + [1] * 58,
                  "multi_latent_attention": True, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_head_dim": 128,
                  "qk_pos_emb_head_dim": 64, "v_head_dim": 128, "expert_model_parallel_size": 8},
    }  # fmt: skip
    found = from_megatron(flattened(experts), "recipe.yaml")
    assert found.settings == {"expert": 8} and billions(plan_of(found)) == pytest.approx(671.0, rel=0.001)
    limited = from_megatron(flattened(experts) | {"moe_router_num_groups": 8, "moe_router_group_topk": 4}, "args.sh")
    assert limited.model["experts"] == found.model["experts"] | {"groups": 8, "groups_per_token": 4}
    as_text = flattened(experts) | {"moe_layer_freq": "([0]*3+[1]*58)"}
    assert from_megatron(as_text, "args.sh").model == found.model
    every = from_megatron(flattened(experts) | {"moe_layer_freq": 4}, "args.sh").model
    assert every["experts_every"] == 4 and "dense_layers" not in every and every["ffn"] == 18432
    with pytest.raises(BadInput, match="moe_layer_freq"):
        from_megatron(as_text | {"moe_layer_freq": "([1]*3+[0]*58)"}, "args.sh")


PLAIN = {"hidden_size": "64", "num_attention_heads": "4", "vocab_size": "100", "seq_length": "128"}


@pytest.mark.parametrize(
    ("argument", "value", "said"),
    [
        ("hybrid_layer_pattern", "M-X", "found 'X'; allowed: M"),
        ("hybrid_override_pattern", "M-G-*-", "found M and G; allowed: one kind of mixer"),
        ("hybrid_layer_pattern", "*-+-", "with latent attention; allowed: one kind of attention"),
        ("hybrid_layer_pattern", "*-*-/M-", "allowed behind each /: \\*-"),
        ("hybrid_layer_pattern", "", "num_layers: missing"),
        ("experimental_attention_variant", "nsa", "another attention"),
        ("linear_attention_type", "rwkv", "another linear attention"),
        ("mtp_hybrid_override_pattern", "MM", "another layer of multi-token prediction"),
        ("is_hybrid_model", True, "without its pattern"),
        ("hybrid_attention_ratio", "0.5", "without its pattern"),
        ("heterogeneous_layers_config_path", "x.json", "several shapes"),
        ("enable_mhc_connections", True, "residual streams"),
        ("spec", "my.module", "a specification in Python"),
        ("yaml_cfg", "x.yaml", "another file"),
        ("decoder_num_layers", "4", "an encoder and a decoder"),
    ],
)
def test_arguments_that_make_other_layers_are_refused_by_name(argument: str, value: object, said: str) -> None:
    """A pattern of 23 Mamba, 23 expert and 6 attention layers was read as 52 layers of attention and experts."""
    with pytest.raises(BadInput, match=said) as refusal:
        from_megatron(PLAIN | {argument: value}, "args.sh")
    assert len(refusal.value.mistakes) == 1


def test_the_pattern_of_a_transformer_is_read() -> None:
    given = PLAIN | {"num_experts": "8", "moe_ffn_hidden_size": "32", "num_layers": "99"}
    found = from_megatron(given | {"hybrid_layer_pattern": "'*-*-|*E*E|*E*E/*E/*E'", "spec": "mamba"}, "args.sh").model
    assert (found["layers"], found["dense_layers"], found["mtp_layers"], found["experts"]["ffn"]) == (6, 2, 2, 32)
    turns = from_megatron(given | {"hybrid_layer_pattern": "*-*E|*-*E*-"}, "args.sh").model
    assert (turns["layers"], turns["dense_layers"], turns["experts_every"]) == (5, 1, 2)
    latent = from_megatron(PLAIN | {"hybrid_layer_pattern": "+-|+-"}, "args.sh").model
    assert (latent["layers"], latent["attention"]["kv_rank"], latent.get("experts")) == (2, 32, None)
    with pytest.raises(BadInput, match="num_experts: missing"):
        from_megatron(PLAIN | {"hybrid_layer_pattern": "*E"}, "args.sh")


def test_what_is_not_counted_is_said() -> None:
    given = PLAIN | {"num_layers": "4", "--no-effect": "1"}
    assert from_megatron(given | {"moe_router_dtype": "fp32", "lr": "1", "spec": "local"}, "args.sh").notes == ()
    more = {"window_size": "(128,0)", "use_torch_fsdp2": True, "experimental_attention_variant": "dsa",
            "moe_new_kind": "3", "engram_layers": 2, "mtp_hsm": False, "gtp_weight_remat_size": 1}  # fmt: skip
    assert [note.partition(":")[0] for note in from_megatron(given | more, "args.sh").notes] == [
        "sparse attention is counted as over the whole sequence, without its indexer",
        "use_torch_fsdp2", "moe_new_kind", "engram_layers",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ({"fp8_format": "hybrid"}, {"dtype": "fp8"}),
        ({"fp8": "e4m3", "fp8_recipe": "mxfp8"}, {"dtype": "mxfp8"}),
        ({"fp8": None, "fp4": "e2m1"}, {"dtype": "nvfp4"}),
        ({"fp8": "hybrid", "num_layers_at_end_in_bf16": 2}, {"dtype": "fp8"}),
        ({"fp8": "hybrid", "first_last_layers_bf16": True, "num_layers_at_end_in_bf16": "0"},
         {"dtype": "fp8", "precision": {"first_layers": 1}}),
        ({"fp4_format": "e2m1", "first_last_layers_bf16": True, "num_layers_at_start_in_bf16": 0,
          "num_layers_at_end_in_bf16": 2}, {"dtype": "nvfp4", "precision": {"last_layers": 2}}),
        ({"fp8": "e4m3", "fp8_recipe": "mxfp8", "fp8_output_proj": True, "mtp_num_layers": 1,
          "keep_mtp_spec_in_bf16": True}, {"dtype": "mxfp8", "precision": {"head": "mxfp8", "mtp": "bf16"}}),
        ({"first_last_layers_bf16": True}, {}),
        ({"fp8_format": "hybrid", "fp8_param_gather": True}, {"dtype": "fp8", "weight_bytes": 1}),
        ({"fp8": "e4m3", "fp8_param": True}, {"dtype": "fp8", "weight_bytes": 1}),
        ({"fp8": "e4m3", "fp8_param_gather": False}, {"dtype": "fp8"}),
        ({"fp8_param_gather": True}, {}),
        ({"fp4": "e2m1", "fp4_param_gather": False}, {"dtype": "nvfp4"}),
        ({"fp8": "e4m3", "fp4_param_gather": True}, {"dtype": "fp8"}),
    ],
)  # fmt: skip
def test_formats_of_megatron(more: dict[str, Any], keys: dict[str, Any]) -> None:
    config = from_megatron(PLAIN | {"num_layers": "4"} | more, "args.sh")
    formats = ("dtype", "precision", "weight_bytes")
    assert {key: config.model[key] for key in formats if key in config.model} == keys
    assert config.notes == ()


def test_layers_in_16_bits_of_a_pattern_of_pairs_are_pairs() -> None:
    """Megatron counts attention and block as a layer each."""
    kept = {"fp8": "hybrid", "first_last_layers_bf16": True, "num_layers_at_end_in_bf16": 2}
    config = from_megatron(PLAIN | kept | {"hybrid_layer_pattern": "*-*-*-"}, "args.sh")
    assert config.model["precision"] == {"last_layers": 1}
    with_file = from_megatron(PLAIN | kept | {"num_layers": 4, "te_precision_config_file": "te.cfg"}, "args.sh")
    assert with_file.notes == (
        "te_precision_config_file: formats of single products are in that file: say them in model.precision",
    )


def test_weights_of_mxfp8_are_counted_in_16_bits() -> None:
    """Megatron gathers them in 16 bits, and keeps two copies in 8."""
    gathered = {"fp8": "e4m3", "fp8_recipe": "mxfp8", "fp8_param_gather": True}
    config = from_megatron(PLAIN | {"num_layers": 4} | gathered, "args.sh")
    assert "weight_bytes" not in config.model
    assert config.notes == ("fp8_param_gather: weights are counted in 16 bits",)


@pytest.mark.parametrize("name", ["fp4_param_gather", "fp4_param"])
def test_weights_of_nvfp4_are_counted_in_8_bits(name: str) -> None:
    config = from_megatron(PLAIN | {"num_layers": 4, "fp4_format": "e2m1", name: True}, "args.sh")
    assert config.model["weight_bytes"] == 1
    assert config.notes == (f"{name}: weights are counted in 8 bits: two copies in 4, of which one is gathered",)


def test_a_plan_takes_bytes_of_weights_from_its_configuration_or_as_given() -> None:
    config = from_megatron(PLAIN | {"num_layers": 4, "fp8": "e4m3", "fp8_param_gather": True}, "args.sh")

    def weight_bytes(**training: Any) -> int | None:
        wanted = Wanted(2, 4, "h100-80gb", DEVICES["h100-80gb"], training=training)
        assert plan_text(config, wanted, "args.sh").count("weight_bytes") <= 1
        found: int | None = plan_document(config, wanted)["model"].get("weight_bytes")
        return found

    assert weight_bytes() == weight_bytes(dtype="fp8") == 1
    assert weight_bytes(weight_bytes=2) == 2
    assert weight_bytes(dtype="bf16") is None


def test_a_plan_has_the_formats_of_its_configuration_and_their_rates() -> None:
    config = from_megatron(PLAIN | {"num_layers": 4, "fp4": "e2m1", "first_last_layers_bf16": True}, "args.sh")

    def plan(device: str = "b200-180gb", **training: Any) -> dict[str, Any]:
        return plan_document(config, Wanted(2, 4, device, DEVICES[device], training=training))

    found = plan()
    ends = {"first_layers": 1, "last_layers": 1}
    assert (found["model"]["dtype"], found["model"]["precision"]) == ("nvfp4", ends)
    assert "product_tflops_8bit" not in found["hardware"]
    peak = DEVICES["b200-180gb"]
    share = peak.narrow_products
    assert found["hardware"]["product_tflops"] == pytest.approx(9000 * share, rel=1e-3)
    some = plan(precision={"mlp": "mxfp8"})
    assert some["model"]["precision"] == ends | {"mlp": "mxfp8"} and some["model"]["dtype"] == "nvfp4"
    assert plan(precision={"last_layers": 0})["model"]["precision"] == {"first_layers": 1, "last_layers": 0}
    assert some["hardware"]["product_tflops_8bit"] == pytest.approx(4500 * share, rel=1e-3)
    # With another format than the configuration's what it keeps does not hold.
    assert "precision" not in plan(dtype="bf16")["model"]
    four = plan(dtype="mxfp8", precision={"mlp": "nvfp4"})["hardware"]
    assert four["product_tflops_4bit"] == pytest.approx(9000 * share, rel=1e-3)
    for training, line in (
        ({}, "dtype: found nvfp4, of which h100-80gb has no products; allowed: bf16, fp16, fp32, fp8, mxfp8"),
        ({"dtype": "fp8", "precision": {"mlp": "nvfp4"}},
         "precision.mlp: found nvfp4, of which h100-80gb has no products; allowed: bf16, fp16, fp32, fp8, mxfp8"),
    ):  # fmt: skip
        with pytest.raises(BadInput, match=re.escape(line)):
            plan("h100-80gb", **training)


def test_words_of_an_array_and_keys_with_dashes_are_read() -> None:
    assert arguments_of('A=(\n  "--vocab-size 128256"\n  "--swiglu"\n)') == {"vocab_size": "128256", "swiglu": True}
    assert flattened({"MODEL_ARGS": {"--num-layers": 4}}) == {"num_layers": 4}
    assert flattened({"seq_length": "${SEQUENCE:8192}", "path": "${HOME}"}) == {"seq_length": "8192", "path": "${HOME}"}
    plain = PLAIN | {"num_layers": "4"}
    assert from_megatron(plain | {"quick_geglu": True}, "a.sh").model.get("gated") is None
    assert from_megatron(plain, "a.sh").model["gated"] is False


def test_a_key_that_a_file_of_arguments_repeats_has_its_last_value(tmp_path: Path) -> None:
    source = tmp_path / "model_config.yaml"
    lines = "".join(f"  --{name.replace('_', '-')}: {value}\n" for name, value in PLAIN.items())
    source.write_text(f"MODEL_ARGS:\n{lines}  --num-layers: 4\n  --num-layers: 6\n")
    assert read_config(str(source)).model["layers"] == 6


def test_an_option_without_its_number_is_named_with_a_cause(tmp_path: Path) -> None:
    script = tmp_path / "gpt-1.3b.sh"
    script.write_text("--num-layers ${LAYERS} --hidden-size 64 --num-attention-heads 4 --vocab-size 512")
    with pytest.raises(BadInput, match="num_layers: found no number, or a variable that the script does not set"):
        read_config(str(script))
    script.write_text(f"LAYERS=8\n{script.read_text()}")
    assert read_config(str(script)).name == "gpt-1.3b"


BILLIONS = {
    "8B": 8.03, "70B": 70.6, "405B": 405.9, "0.6B": 0.6, "1.7B": 1.72, "4B": 4.02, "14B": 14.8, "32B": 32.8,
    "30B-A3B": 30.5, "235B-A22B": 235.1, "16B": 15.7, "236B": 235.7, "671B": 671.0,
}  # fmt: skip


def test_torchtitan_s_mixed_precision() -> None:
    """Both keys, each alone and together; the plan's own options go before them."""
    document = {"model": {"name": "llama3", "flavor": "8B"}}

    def model(given: dict[str, Any], **training: Any) -> tuple[Any, Any, str]:
        config = from_torchtitan(document | {"training": given}, "job.toml")
        wanted = Wanted(4, 8, "h100-80gb", DEVICES["h100-80gb"], training={"sharding": "parameters"} | training)
        found, text = plan_document(config, wanted)["model"], plan_text(config, wanted, "job.toml")
        return found["dtype"], found.get("reduction_bytes"), text

    given = {"mixed_precision_param": "float32", "mixed_precision_reduce": "bfloat16"}
    assert model({})[:2] == ("bf16", 4)
    assert model(given)[:2] == ("fp32", 2)
    assert model(given, dtype="fp16", reduction_bytes=4)[:2] == ("fp16", 4)
    assert model({"mixed_precision_param": "bfloat16", "mixed_precision_reduce": "float32"})[:2] == ("bf16", 4)
    assert model(given, sharding="optimizer")[1] is None
    assert "reduction_bytes: 2          # of the configuration" in model(given)[2]
    assert "products in 32 bits are counted at the rate of 16" in model(given)[2]
    assert "products in 32 bits" not in model({"mixed_precision_reduce": "float32"})[2]
    for value in ("float8", ["float32"]):
        with pytest.raises(BadInput, match=r"job.toml: training.mixed_precision_reduce: found .*; allowed: bfloat16"):
            model({"mixed_precision_reduce": value})


@pytest.mark.parametrize(("name", "flavor"), FLAVORS, ids=" ".join)
def test_torchtitan_s_flavors(name: str, flavor: str) -> None:
    document = {"model": {"name": name, "flavor": flavor}, "parallelism": {"pipeline_parallel_degree": 4}}
    found = from_torchtitan(document | {"training": {"seq_len": 2048}}, "job.toml")
    assert found.settings == {"devices": 4, "sequence": 2048}
    assert plan_document(found, Wanted(4, 8, "h100-80gb", DEVICES["h100-80gb"]))["model"]["early_stop"] is True
    reduced = [plan_document(found, Wanted(4, 8, "h100-80gb", DEVICES["h100-80gb"], training=own))["model"] for own in (
        {}, {"sharding": "optimizer"}, {"sharding": "gradients"}, {"sharding": "parameters"},
        {"sharding": "parameters", "reduction_bytes": 2},
    )]  # fmt: skip
    assert [model.get("reduction_bytes") for model in reduced] == [None, None, 4, 4, 2]
    expected = 8.19 if (name, flavor) == ("qwen3", "8B") else BILLIONS[flavor]
    assert billions(plan_of(found)) == pytest.approx(expected, rel=0.015)


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"model_type": "mamba9"}, "model_type: found 'mamba9'; known: "),
        ({"hidden_size": None}, "hidden_size: missing"),
        ({"num_hidden_layers": "many"}, "num_hidden_layers: found 'many'"),
        ({"model_type": "mixtral"}, "num_local_experts: missing"),
        (
            {"model_type": "qwen3_moe", "mlp_only_layers": [3], "num_experts": 8, "num_experts_per_tok": 2},
            "mlp_only_layers",
        ),
        ({"model_type": "zamba2"}, "model_type: found 'zamba2', a model with layers of shared attention"),
        ({"model_type": "mamba2"}, "found 'mamba2', a model with layers of state spaces (Mamba) alone"),
        ({"model_type": "qwen9"}, "known: apertus, arcee, "),
        (
            {
                "model_type": "qwen3_moe",
                "num_hidden_layers": 10**12,
                "num_experts": 8,
                "num_experts_per_tok": 2,
                "moe_intermediate_size": 64,
            },
            "allowed: up to 10000",
        ),
        (
            {"model_type": "llama4_text", "num_local_experts": 8, "num_experts_per_tok": 1, "moe_layers": [1, 2, 5]},
            "moe_layers: found experts in the layers [1, 2, 5]",
        ),
        (
            {"layer_types": ["full_attention", "linear_attention"] * 16},
            "layer_types: found linear_attention; allowed: full_attention, sliding_attention",
        ),
        ({"attn_type_list": [0, 1] * 16}, "attn_type_list: found 0, linear attention; allowed: 1"),
        (
            {"model_type": "ernie4_5_moe", "moe_num_experts": 8, "moe_k": 2, "moe_layer_end_index": 20},
            "moe_layer_end_index: found 20; allowed: the last layer, or -1",
        ),
    ],
)
def test_mistakes(changes: dict[str, Any], mistake: str) -> None:
    document = {key: value for key, value in (PUBLISHED["Llama 3.1 8B"][0] | changes).items() if value is not None}
    with pytest.raises(BadInput) as caught:
        from_hugging_face(document, "config.json")
    assert any(mistake in line for line in caught.value.mistakes)


@pytest.mark.parametrize(
    ("changes", "kv_heads"),
    [
        ({}, 1),
        ({"multi_query": True}, 1),
        ({"multi_query": False}, None),
        ({"multi_query": True, "new_decoder_architecture": True, "num_kv_heads": 8}, 8),
    ],
)
def test_falcon_s_key_heads(changes: dict[str, Any], kv_heads: int | None) -> None:
    falcon = {"model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128}
    found = from_hugging_face(falcon | {"vocab_size": 65024} | changes, "config.json")
    assert found.model["attention"].get("kv_heads") == kv_heads


@pytest.mark.parametrize(("keys", "dense"), [({}, 1), ({"moe_layer_start_index": 3}, 3)])
def test_ernie_s_first_layers_are_dense(keys: dict[str, Any], dense: int) -> None:
    document = PUBLISHED["ERNIE 4.5 21B-A3B"][0].copy()
    del document["moe_layer_start_index"]
    assert from_hugging_face(document | keys, "config.json").model["dense_layers"] == dense


def layers_of(plan: PlanProblem) -> list[str]:
    return [layer.name for layer in plan.model.sequence]


def test_experts_in_every_other_layer() -> None:
    """Maverick: dense layers between those with experts; 17 billion parameters are used by a token."""
    plan = plan_of(from_hugging_face(PUBLISHED["Llama 4 Maverick"][0], "config.json"))
    assert layers_of(plan) == ["embedding", *["dense", "moe"] * 24, "head"]
    active = float(plan.assumptions[0].partition(", ")[2].partition(" ")[0])
    assert active == pytest.approx(17.2, abs=0.2)
    scout = from_hugging_face(PUBLISHED["Llama 4 Scout"][0], "config.json")
    assert layers_of(plan_of(scout)) == ["embedding", *["moe"] * 48, "head"]
    assert "the text model alone" in scout.notes[0] and len(scout.notes) == 1
    assert layers_of(plan_of(scout, sequence=16384)) == ["embedding", *[*["moe-window"] * 3, "moe"] * 12, "head"]


@pytest.mark.parametrize(
    ("keys", "dense", "every"),
    [
        ({"model_type": "qwen3_moe", "decoder_sparse_step": 2}, 1, 2),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [0, 1]}, 2, None),
        ({"model_type": "deepseek_v3", "first_k_dense_replace": 3, "moe_layer_freq": 2}, 4, 2),
        ({"model_type": "deepseek_v3", "moe_layer_freq": [0] + [1] * 7}, 1, None),
        ({"model_type": "ernie4_5_moe", "moe_layer_start_index": 2, "moe_layer_interval": 2}, 3, 2),
        ({"model_type": "llama4_text", "moe_layers": [2, 5]}, 2, 3),
    ],
)
def test_which_layers_have_experts(keys: dict[str, Any], dense: int, every: int | None) -> None:
    """By the rule of each class in transformers."""
    document = hf("", 8, 64, 4, 4, 96, 1000, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=32) | keys
    model = from_hugging_face(document, "config.json").model
    assert (model.get("dense_layers"), model.get("experts_every")) == (dense, every)
    names = layers_of(plan_of(from_hugging_face(document, "config.json"), devices=2))
    assert names[1:-1] == ["moe" if at >= dense and (at - dense) % (every or 1) == 0 else "dense" for at in range(8)]


@in_turn("kind", [*REFUSED, *FAMILIES])
def test_a_model_is_read_or_refused_by_its_whole_name(kind: str) -> None:
    """None that begins as a known one does is taken for that, and none is named that is not read."""
    assert (kind in REFUSED) is not (kind in FAMILIES)
    with pytest.raises(BadInput) as caught:
        from_hugging_face(PUBLISHED["Llama 3.1 8B"][0] | {"model_type": f"{kind}_nonsense"}, "config.json")
    known = caught.value.mistakes[0].partition("known: ")[2].partition(";")[0]
    assert set(known.split(", ")) == {one.removesuffix("_text") for one in FAMILIES}


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, plan = tmp_path / "config.json", tmp_path / "plan.yaml"
    source.write_text(json.dumps(PUBLISHED["Llama 3.1 70B"][0]))
    words = ["new", "--from", str(source), "--microbatches", "64"]
    assert main([*words, "--devices", "17", "--hardware", "h100-80gb", "-o", str(plan)]) == 0
    said = capsys.readouterr().out
    assert "70.55 billion parameters" in said and "17 pipeline ranks of 1 x h100-80gb: 17 in all" in said
    assert "no plan fits" not in said and "model state: 69." in said
    assert "GiB more on the first rank: hardly any plan fits; more pipeline ranks" in said
    assert main([*words, "--devices", "24", "--hardware", "h100-80gb"]) == 0
    assert "hardly any" not in capsys.readouterr().err
    assert main(["layers", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assumptions"]
    (tmp_path / "job.toml").write_text('[model]\nname = "llama3"\nflavor = "8B"\n')
    assert main(["new", "--from", str(tmp_path / "job.toml"), "--devices", "2", "--microbatches", "4", "--hardware",
                 "a100-80gb", "--mfu", "50%"]) == 0  # fmt: skip
    assert "sustained_tflops: 156" in capsys.readouterr().out
    many = ["--devices", "17", "--hardware", "h100-80gb", "--microbatch-size", "400"]
    assert main([*words, *many, "-o", str(tmp_path / "many.yaml")]) == 0
    assert "a layer takes all memory of a device, or more, while it runs: no plan fits" in capsys.readouterr().out


LOG = """\
using world size: 8, data-parallel-size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 4
------------------------ arguments ------------------------
  ffn_hidden_size ................................. 256
  hidden_size ..................................... 64
  micro_batch_size ................................ 2
  moe_layer_freq .................................. 1
  num_attention_heads ............................. 4
  num_experts ..................................... None
  num_layers ...................................... 8
  pipeline_model_parallel_size .................... 4
  seq_length ...................................... 128
  tensor_model_parallel_size ...................... 2
-------------------- end of arguments ---------------------
setting number of micro-batches to constant 16
 > padded vocab (size: 50257) with 175 dummy tokens (new size: 50432)
"""


def test_the_dump_of_arguments_in_a_log_reads(tmp_path: Path) -> None:
    source = tmp_path / "train.log"
    source.write_text(LOG)
    config = read_config(str(source))
    assert config.model["vocabulary"] == 50432 and config.model["layers"] == 8 and "experts" not in config.model
    assert config.settings == {"sequence": 128, "microbatch_size": 2, "devices": 4, "tensor": 2, "microbatches": 16}
    # A log of several ranks has their names before each line.
    source.write_text("".join(f"[rank0]: {line}\n" for line in LOG.splitlines()))
    assert read_config(str(source)).model == config.model


def test_a_vocabulary_is_asked_for_by_megatrons_name_or_known_by_its_tokenizer(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    plain = "--num-layers 8 --hidden-size 64 --num-attention-heads 4 --tensor-model-parallel-size 2 "
    script.write_text(plain + "--tokenizer-type HuggingFaceTokenizer")
    with pytest.raises(
        BadInput, match="vocab_size: missing; it is required of HuggingFaceTokenizer, by --vocabulary N"
    ):
        read_config(str(script))
    assert read_config(str(script), 512).model["vocabulary"] == 512
    script.write_text(plain + "--merge-file merges.txt")
    found = read_config(str(script))
    assert found.model["vocabulary"] == 50432 and any("assumed 50257" in note for note in found.notes)
    with pytest.raises(BadInput, match="--vocabulary: found with a file of another program"):
        (tmp_path / "config.json").write_text("{}")
        read_config(str(tmp_path), 512)


def test_a_compressed_configuration_is_read_by_the_ending_before(tmp_path: Path) -> None:
    script = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 1000"
    (tmp_path / "job.sh").write_text(script)
    (tmp_path / "job.sh.gz").write_bytes(gzip.compress(script.encode(), mtime=0))
    assert read_config(str(tmp_path / "job.sh.gz")) == read_config(str(tmp_path / "job.sh"))
