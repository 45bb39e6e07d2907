"""`config.json` of Hugging Face's transformers: decoders, dense or with experts, with or without latent attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pipesched.errors import BadInput, did_you_mean
from pipesched.files.model_configs.model_config import Keys, ModelConfig, without_none
from pipesched.files.schema_errors import shown


class _Family(NamedTuple):
    """What a model_type does not say in its file: defaults of its class in transformers."""

    gated: bool = True
    tied: bool = False
    experts: bool = False
    one_key_head: bool = False  # `multi_query`
    first_expert_layer: int = 0  # `moe_layer_start_index`


_GATED, _UNGATED, _EXPERTS = _Family(), _Family(gated=False), _Family(experts=True)
FAMILIES: Mapping[str, _Family] = {
    **dict.fromkeys(
        ("llama", "mistral", "ministral", "qwen2", "qwen3", "phi3", "olmo", "olmo2", "olmo3", "glm", "glm4", "granite",
         "internlm2", "exaone4", "smollm3", "seed_oss", "stablelm", "baichuan", "yi", "ernie4_5", "mimo", "ministral3",
         "hunyuan_v1_dense", "qwen3_vl_text"), _GATED,
    ),
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "gemma3_text", "cohere", "cohere2"), _Family(tied=True)),
    **dict.fromkeys(("gpt2", "opt", "starcoder2", "bloom"), _Family(gated=False, tied=True)),
    **dict.fromkeys(("gpt_bigcode", "falcon"), _Family(gated=False, tied=True, one_key_head=True)),
    **dict.fromkeys(("gpt_neox", "phi", "nemotron", "apertus", "arcee"), _UNGATED),
    **dict.fromkeys(
        ("mixtral", "qwen2_moe", "qwen3_moe", "deepseek", "deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2",
         "glm4_moe", "glm4_moe_lite", "glm_moe_dsa", "gpt_oss", "olmoe", "phimoe", "granitemoe", "dots1", "minimax_m2",
         "bailing_moe", "bailing_moe_v2", "qwen3_vl_moe_text"),
        _EXPERTS,
    ),
    "ernie4_5_moe": _Family(experts=True, first_expert_layer=1),
}  # fmt: skip
_HEADS, _HIDDEN = ("num_attention_heads", "n_head"), ("hidden_size", "n_embd", "n_embed")
_ONE_IN = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "moe_layer_interval")


def from_hugging_face(document: Mapping[str, Any], source: str) -> ModelConfig:
    """The model of a configuration; `BadInput` for another kind of model, and for each key that is missing."""
    notes = []
    config, kind = document, document.get("model_type")
    if isinstance(document.get("text_config"), Mapping):
        config = {**document["text_config"]}
        config.setdefault("tie_word_embeddings", document.get("tie_word_embeddings"))
        kind = config.get("model_type", kind)
        notes.append(f"{document.get('model_type')}: the text model alone; what encodes images or sound is left out")
    family = FAMILIES.get(str(kind))
    if family is None:
        near, known = did_you_mean(str(kind), FAMILIES), sorted({name.partition("_")[0] for name in FAMILIES})
        raise BadInput(
            f"{source}: model_type: found {shown(kind)}; known: those of {', '.join(known)}{near}; for another model "
            "write the section model of a plan file by hand (docs/layers.md)"
        )
    keys = Keys(source, config)
    _refuse_linear_attention(keys, source)
    hidden = keys.number(*_HIDDEN)
    experts = _experts(keys, config, source) if family.experts else None
    inner = keys.optional("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    tied = config.get("tie_word_embeddings")
    layers = keys.number("num_hidden_layers", "n_layer", "num_layers")
    model = {
        "layers": layers,
        "hidden": hidden,
        "vocabulary": keys.number("vocab_size"),
        "attention": _attention(keys, config, family),
        "ffn": inner or (None if experts else 4 * hidden if not family.gated else keys.number("intermediate_size")),
        "gated": None if family.gated else False,
        "mtp_layers": keys.optional("num_nextn_predict_layers", "num_mtp_modules"),
        "tied": True if (family.tied if tied is None else tied) else None,
    }
    if experts is not None:
        dense = _dense_layers(keys, config, family, layers, source)
        model |= {"experts": experts, "dense_layers": dense or None, "ffn": model["ffn"] if dense else None}
    longest = keys.optional("max_position_embeddings", "n_positions")
    keys.check()
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        notes.append("attention in a sliding window is counted as over the whole sequence")
    if config.get("index_topk"):
        notes.append("sparse attention is counted as over the whole sequence")
    name = str(document.get("_name_or_path") or kind).rstrip("/").rpartition("/")[2]
    return ModelConfig(name, without_none(model), {}, longest, tuple(notes))


def _attention(keys: Keys, config: Mapping[str, Any], family: _Family) -> dict[str, int]:
    heads = keys.number(*_HEADS)
    if config.get("kv_lora_rank") is not None:
        return without_none({
            "heads": heads, "query_rank": keys.optional("q_lora_rank"), "kv_rank": keys.number("kv_lora_rank"),
            "key_size": keys.number("qk_nope_head_dim"), "rope_size": keys.number("qk_rope_head_dim"),
            "value_size": keys.number("v_head_dim"),
        })  # fmt: skip
    # Falcon's newer architecture has groups of heads whatever `multi_query` says.
    one = config.get("multi_query", family.one_key_head) and not config.get("new_decoder_architecture")
    groups = 1 if one else keys.optional("num_key_value_heads", "num_kv_heads")
    return without_none({"heads": heads, "kv_heads": groups, "head_size": keys.optional("head_dim")})


def _experts(keys: Keys, config: Mapping[str, Any], source: str) -> dict[str, int]:
    for name in _ONE_IN:
        if config.get(name) not in (None, 1):
            allowed = "1, experts in every layer after the dense ones"
            raise BadInput(f"{source}: {name}: found {shown(config[name])}; allowed: {allowed}")
    ffn = keys.number("moe_intermediate_size", "intermediate_size")
    shared, rest = divmod(keys.optional("shared_expert_intermediate_size") or 0, ffn)
    if rest:
        raise BadInput(f"{source}: shared_expert_intermediate_size: found no multiple of an expert's width, {ffn}")
    return without_none({
        "number": keys.number("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        "per_token": keys.number("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k"),
        "shared": keys.optional("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or shared or None,
        "ffn": ffn,
    })  # fmt: skip


def _dense_layers(keys: Keys, config: Mapping[str, Any], family: _Family, layers: int, source: str) -> int:
    """How many of the first layers have no experts; `BadInput` where they are not the first ones."""
    listed = keys.listed("mlp_only_layers")
    if listed != list(range(len(listed))):
        raise BadInput(f"{source}: mlp_only_layers: found {shown(listed)}; allowed: the first layers")
    last = config.get("moe_layer_end_index", -1)
    if last not in (-1, layers - 1):
        raise BadInput(f"{source}: moe_layer_end_index: found {shown(last)}; allowed: the last layer, or -1")
    start = "moe_layer_start_index"
    first = (keys.optional(start) or 0) if start in config else family.first_expert_layer
    return keys.optional("first_k_dense_replace") or len(listed) or first


def _refuse_linear_attention(keys: Keys, source: str) -> None:
    """`BadInput` for layers whose costs are not those of attention: linear attention, state spaces, recurrence."""
    types = {*map(str, keys.listed("layer_types"))} - {"full_attention", "sliding_attention", "chunked_attention"}
    if types:
        found = ", ".join(sorted(types))
        raise BadInput(f"{source}: layer_types: found {found}; allowed: full_attention, sliding_attention")
    if 0 in keys.listed("attn_type_list"):
        raise BadInput(
            f"{source}: attn_type_list: found 0, linear attention; allowed: 1, full attention, in all layers"
        )
