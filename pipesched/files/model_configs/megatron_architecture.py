"""Megatron arguments that change a layer's structure or cost: each is refused, or named in a note as not counted.

Source: the argument lists of Megatron-LM's main of 2026-08-22 (training/arguments.py and TransformerConfig) and of
Megatron-Core 0.16. Arguments that change training but not cost (losses, routers' choices, kernels) are not listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.megatron_hybrid import is_linear
from pipesched.files.schema_errors import shown

_BY_HAND = "for this model write the layers of a plan file by hand (docs/plans.md)"
_OFF = frozenset({"", "none", "null", "false", "0", "0.0", "[]"})

# No key of `model` says what these make of a layer.
_REFUSED: Mapping[str, str] = {
    "experimental_attention_variant": "another attention than in all layers alike",
    "linear_attention_type": "another linear attention than gated_delta_net",
    "heterogeneous_layers_config_path": "layers of several shapes, in a file of their own",
    "heterogeneous_layers_config_encoded_json": "layers of several shapes",
    "heterogeneous_block_specs": "layers of several shapes",
    "spec": "layers of a specification in Python",
    "is_hybrid_model": "a hybrid model without its pattern",
    "hybrid_attention_ratio": "a hybrid model without its pattern",
    "hybrid_mlp_ratio": "a hybrid model without its pattern",
    "enable_mhc_connections": "several residual streams",
    "enable_hyper_connections": "several residual streams",
    "mtp_hybrid_override_pattern": "another layer of multi-token prediction than an attention and a block",
    "yaml_cfg": "arguments in another file: give that file",
    "decoder_num_layers": "an encoder and a decoder",
    "retro_add_retriever": "a retriever",
    "vision_pretraining": "a vision model",
}
# Values with which these change nothing that is counted.
_HARMLESS: Mapping[str, frozenset[str]] = {
    "spec": frozenset({"local", "te"}), "mtp_hybrid_override_pattern": frozenset({"*e", "*-"}),
}  # fmt: skip

# What is left out, in words; the plan is of the model without it.
_NOT_COUNTED: Mapping[str, str] = {
    "attention_output_gate": "the gate of attention's output is not counted",
    "moe_shared_expert_gate": "the gate of shared experts is not counted",
    "moe_expert_capacity_factor": "every expert is counted with an equal share of the tokens, none dropped or padded",
    "moe_expert_rank_capacity_factor": "every expert is counted with an equal share of the tokens, none dropped",
    "mtp_use_repeated_layer": "multi-token prediction layers are counted with parameters of their own",
    "mtp_hsm": "the mixing of hidden states for multi-token prediction is not counted",
    "optimizer_cpu_offload": "the optimizer's state is counted on the device",
    "use_megatron_fsdp": "weights and gradients are counted whole on each replica (no FSDP)",
    "use_torch_fsdp2": "weights and gradients are counted whole on each replica (no FSDP)",
    "gtp_weight_remat_size": "weights are counted whole on each replica",
    "tensor_parallel_num_weight_shards": "weights are counted whole on each replica",
    "expert_gtp_weight_remat_size": "weights are counted whole on each replica",
    "expert_tensor_parallel_num_weight_shards": "weights are counted whole on each replica",
    "vision_model_type": "the text model alone; what encodes images is left out",
    "use_checkpoint_args": "arguments that the checkpoint replaces are read as they stand here",
}
# Read with gated delta nets, whose attention has them.
_OF_LINEAR = frozenset(
    {"experimental_attention_variant", "linear_attention_type", "attention_output_gate", "moe_shared_expert_gate"}
)
_AS_ONE = frozenset(
    {
        "gtp_weight_remat_size", "tensor_parallel_num_weight_shards", "expert_gtp_weight_remat_size",
        "expert_tensor_parallel_num_weight_shards",
    }
)  # fmt: skip

_READ = frozenset(
    {
        "num_layers", "encoder_num_layers", "hidden_size", "num_attention_heads", "ffn_hidden_size", "kv_channels",
        "num_query_groups", "group_query_attention", "vocab_size", "padded_vocab_size", "num_experts",
        "num_moe_experts", "moe_ffn_hidden_size", "moe_shared_expert_intermediate_size", "moe_router_topk",
        "moe_layer_freq", "mtp_num_layers", "multi_latent_attention", "q_lora_rank", "kv_lora_rank", "qk_head_dim",
        "qk_pos_emb_head_dim", "v_head_dim", "hybrid_layer_pattern", "hybrid_override_pattern",
        "encoder_seq_length", "expert_model_parallel_size", "window_size", "moe_latent_size", "mamba_state_dim",
        "mamba_head_dim", "mamba_num_groups", "mamba_num_heads", "linear_attention_freq", "linear_conv_kernel_dim",
        "linear_key_head_dim", "linear_value_head_dim", "linear_num_key_heads", "linear_num_value_heads",
        "num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16",
    }
)  # fmt: skip
# Names that sound of a layer's shape or work.
_FAMILY = re.compile(
    r"(moe|mtp|mamba|gdn|gdp|dsa|csa|mhc|hyper|hybrid|linear|heterogeneous|attention|attn|mla|qk?|kv|v|ffn|mlp|expert|"
    r"experts|encoder|decoder|vision|img|retro|engram|latent|residual)_.*"
    r"|num_.*(layers|heads|experts|groups|streams)|.*_(head_dim|hidden_size|lora_rank|num_layers|layer_pattern|variant|freq)"
)
# Of these what costs nothing here: the choice of experts, losses, kernels and exchanges; recomputation and placement,
# which the plan decides; sizes of what is refused above, or of inference.
_WITHOUT_COST = re.compile(
    r"moe_(router|token|flex|deepep|enable|hybridep|ncclep|permute|paged_stash|use|single|upcycling|aux|z_loss|input"
    r"|grouped|per_layer|layer_recompute|apply|shared_expert_(overlap|glu)|mlp|dispatch|combine|pad|extended|grad_scale"
    r"|deepgemm).*"
    r"|mtp_(loss|detach|standalone|grad_scale).*"
    r"|(mamba|gdp|dsa|mhc|mup|dino|hybrid_context)_.*|linear_(attention_freq|conv_kernel_dim|(num_)?(key|value)_head.*)"
    r"|attention_(dropout|softmax|backend).*|attn_.*|qk_(layernorm|l2_norm|clip).*|mla_down_proj_fusion"
    r"|mlp_chunks.*|expert_tensor_parallel_size|encoder_(tensor|pipeline)_model_parallel_size"
    r"|num_(virtual|layers_(per|in|at)|microbatches|distributed|dataset|workers).*|decoder_(first|last)_pipeline.*"
    r"|decoder_seq_length|account_.*|recompute_.*|(cpu_offloading|mhc_recompute|relative_attention)_.*|num_heads"
    r"|.*_(window|window_attn_skip|no_rope|linear_attention|topk|interval)_freq|window_attn_skip_freq|no_rope_freq"
    r"|img_(h|w)|vision_(backbone|pretraining)_type|retro_.*|query_in_block_prob"
)


def check_architecture(values: Mapping[str, Any], source: str) -> tuple[str, ...]:
    """Return a note for each argument that is left out of the model.

    `BadInput` for arguments that no plan can express. `values` are the arguments by name, `source` names them in
    messages.
    """
    pattern = bool(values.get("hybrid_layer_pattern") or values.get("hybrid_override_pattern"))
    # A hybrid model's layers are those of its pattern, whatever these say.
    of_pattern = {"spec", "is_hybrid_model", "hybrid_attention_ratio", "hybrid_mlp_ratio"} if pattern else set[str]()
    given = {name: value for name, value in values.items() if _is_on(name, value) and name not in of_pattern}
    sparse, linear = str(given.get("experimental_attention_variant")) == "dsa", is_linear(values)
    if linear:
        given = {name: value for name, value in given.items() if name not in _OF_LINEAR}
    refused = [
        f"{source}: {name}: found {shown(value)}: {_REFUSED[name]}; allowed: without; {_BY_HAND}"
        for name, value in given.items()
        if name in _REFUSED and not (sparse and name == "experimental_attention_variant")
    ]
    if refused:
        raise BadInput(*refused)
    notes = ["sparse attention is counted as over the whole sequence, without its indexer"] if sparse else []
    return tuple(dict.fromkeys([*notes, *_left_out(given)]))


def _is_on(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    return text not in _OFF and text not in _HARMLESS.get(name, ()) and not (name in _AS_ONE and text == "1")


def _left_out(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name in _NOT_COUNTED:
            yield f"{name}: {_NOT_COUNTED[name]}"
        elif name == "expert_tensor_parallel_size" and str(value) != "1":
            yield f"{name}: every expert is counted whole on its device"
        elif (
            name not in _READ and name not in _REFUSED and not _WITHOUT_COST.fullmatch(name) and _FAMILY.fullmatch(name)
        ):
            yield f"{name}: {shown(value)} is not known here, and is not counted"
