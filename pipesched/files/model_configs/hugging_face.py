"""`config.json` of Hugging Face's transformers: decoders, dense or with experts, with or without latent attention."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from pipesched.errors import BadInput, did_you_mean
from pipesched.files.model_configs.expert_layers import expert_layers, grouped
from pipesched.files.model_configs.hybrid_layers import HYBRIDS
from pipesched.files.model_configs.hybrid_layers import of_hugging_face as hybrid_layers
from pipesched.files.model_configs.layer_pattern import check_layers
from pipesched.files.model_configs.model_config import Keys, ModelConfig, without_none
from pipesched.files.model_configs.near_attention import of_hugging_face as near_attention
from pipesched.files.schema_errors import shown


class _Family(NamedTuple):
    """Structure of models of one `model_type` in transformers, and defaults of values that a file leaves out.

    `gated`: a feed-forward block has two projections up; `tied`: the head shares the embedding's parameters; `experts`:
    the model has layers with experts, of which `shared_experts` serve every token; `one_key_head`: attention may have
    one head of keys and values.
    """

    gated: bool = True
    tied: bool = False
    experts: bool = False
    one_key_head: bool = False  # `multi_query`
    first_expert_layer: int = 0  # `moe_layer_start_index`
    shared_experts: int = 0
    defaults: Mapping[str, Any] = MappingProxyType({})  # of keys that published files leave out


_GEMMA3 = MappingProxyType({
    "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "max_position_embeddings": 131072,
})  # fmt: skip
_LLAMA4 = MappingProxyType({
    "interleave_moe_layer_step": 1, "intermediate_size_mlp": 16384, "head_dim": 128, "attention_chunk_size": 8192,
})  # fmt: skip
_GATED, _UNGATED, _EXPERTS = _Family(), _Family(gated=False), _Family(experts=True)
FAMILIES: Mapping[str, _Family] = {
    **dict.fromkeys(
        ("llama", "mistral", "ministral", "qwen2", "qwen3", "phi3", "olmo", "olmo2", "olmo3", "glm", "glm4", "granite",
         "internlm2", "exaone4", "smollm3", "seed_oss", "stablelm", "baichuan", "yi", "ernie4_5", "mimo", "ministral3",
         "hunyuan_v1_dense", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3_vl_text"), _GATED,
    ),
    **dict.fromkeys(("gemma", "gemma2", "cohere", "cohere2"), _Family(tied=True)),
    **dict.fromkeys(("gemma3", "gemma3_text"), _Family(tied=True, defaults=_GEMMA3)),
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
    "llama4_text": _Family(experts=True, shared_experts=1, defaults=_LLAMA4),
    **dict.fromkeys(HYBRIDS, _GATED),
    "nemotron_h": _UNGATED,
}  # fmt: skip
# Models with layers whose time and memory `pipesched.layers.derived` has no formula for.
REFUSED: Mapping[str, str] = {
    "nemotron_h_puzzle": "several sizes",
    "bailing_moe_linear": "lightning attention with groups",
    **dict.fromkeys(("zamba", "zamba2"), "shared attention"),
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), "state spaces (Mamba) alone"),
    "plamo2": "state spaces (Mamba) with normalizations of their own",
    "rwkv": "recurrence", "recurrent_gemma": "recurrence", "lfm2": "short convolutions",
}  # fmt: skip
_HEADS, _HIDDEN = ("num_attention_heads", "n_head"), ("hidden_size", "n_embd", "n_embed")


def from_hugging_face(document: Mapping[str, Any], source: str) -> ModelConfig:
    """Return the model of a `config.json`, without training settings.

    `document` is its content, `source` its name in messages. `BadInput` for an unsupported kind of model, missing keys,
    or wrong values.
    """
    notes = []
    config, kind = document, document.get("model_type")
    if isinstance(document.get("text_config"), Mapping):
        config = {**document["text_config"]}
        config.setdefault("tie_word_embeddings", document.get("tie_word_embeddings"))
        kind = config.get("model_type", kind)
    if config is not document or "vision_config" in document:
        notes.append(f"{document.get('model_type')}: the text model alone; what encodes images or sound is left out")
    family = _family(kind, source)
    config = {**family.defaults, **config}
    keys = Keys(source, config)
    hidden = keys.number(*_HIDDEN)
    layers = _layers(keys, config)
    check_layers(layers, source)
    hybrid = hybrid_layers(keys, config, str(kind), hidden, layers, source)
    if hybrid is None:
        _refuse_linear_attention(keys, source)
    experts = _experts(keys, family, source) if (hybrid.has_experts if hybrid else family.experts) else None
    inner = keys.optional("intermediate_size_mlp", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size")
    tied = config.get("tie_word_embeddings")
    attention: dict[str, Any] = _attention(keys, config, family)
    model: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "vocabulary": keys.number("vocab_size"),
        "attention": attention | near_attention(keys, config, str(kind), layers, source),
        "ffn": inner or (None if experts else 4 * hidden if not family.gated else keys.number("intermediate_size")),
        "gated": None if family.gated else False,
        "mtp_layers": keys.optional("num_nextn_predict_layers", "num_mtp_modules"),
        "tied": True if (family.tied if tied is None else tied) else None,
    }
    placed = None if hybrid is None else hybrid.expert_layers
    if hybrid is not None and hybrid.pattern is not None:
        dense_blocks = "-" in hybrid.pattern or (model["mtp_layers"] and experts is None)
        model |= {"pattern": hybrid.pattern, "ffn": inner if dense_blocks else None, "experts": experts}
    elif experts is not None:
        dense, every = placed or expert_layers(keys, config, family.first_expert_layer, layers, source)
        model |= {
            "experts": experts,
            "experts_every": every if every > 1 else None,
            "dense_layers": dense or None,
            "ffn": model["ffn"] if dense or every > 1 else None,
        }
    if hybrid is not None:
        model |= {"attention": model["attention"] | hybrid.attention, "mixer": hybrid.mixer}
        if experts is not None:
            model["experts"] = {**experts, **hybrid.experts}
        elif config.get("shared_intermediate_size"):  # of Granite without experts
            model["ffn"] = keys.number("shared_intermediate_size")
    longest = keys.optional("max_position_embeddings", "n_positions", "model_max_length")
    keys.check()
    if config.get("index_topk"):
        notes.append("sparse attention is counted as over the whole sequence")
    name = str(document.get("_name_or_path") or kind).rstrip("/").rpartition("/")[2]
    return ModelConfig(name, without_none(model), {}, longest, tuple(notes))


def _layers(keys: Keys, config: Mapping[str, Any]) -> int:
    """Return the number of layers, which Nemotron's later files say by a list or pattern alone."""
    listed = config.get("layers_block_type") or config.get("hybrid_override_pattern") or ()
    usual = len(listed) if isinstance(listed, list | str) else 0
    return keys.number("num_hidden_layers", "n_layer", "num_layers", default=usual or None)


def _family(kind: object, source: str) -> _Family:
    """Return the defaults of a `model_type`; `BadInput`, with the reason if known, for one that is not supported.

    `kind` is the value of that key, `source` names the configuration in messages.
    """
    name = str(kind)
    if name in FAMILIES:
        return FAMILIES[name]
    if name in REFUSED:
        measured = "measure its layers (profile --by-layer) or write them by hand (docs/layers.md)"
        why = f"a model with layers of {REFUSED[name]}, for whose costs there is no formula"
        raise BadInput(f"{source}: model_type: found {shown(kind)}, {why}; {measured}")
    near = did_you_mean(name, FAMILIES)
    # A model with images has its text part as `_text`, and says the name without.
    known = ", ".join(sorted({one.removesuffix("_text") for one in FAMILIES}))
    raise BadInput(f"{source}: model_type: found {shown(kind)}; known: {known}{near}; for another: docs/layers.md")


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


def _experts(keys: Keys, family: _Family, source: str) -> dict[str, int]:
    ffn = keys.number("moe_intermediate_size", "intermediate_size")
    shared, remainder = divmod(keys.optional("shared_expert_intermediate_size") or 0, ffn)
    if remainder:
        raise BadInput(f"{source}: shared_expert_intermediate_size: found no multiple of an expert's width, {ffn}")
    return without_none({
        "number": keys.number("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        "per_token": keys.number("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k"),
        "shared": keys.optional("n_shared_experts", "num_shared_experts", "moe_num_shared_experts") or shared
        or family.shared_experts or None,
        "ffn": ffn, **grouped(keys.optional("n_group"), keys.optional("topk_group")),
    })  # fmt: skip


def _refuse_linear_attention(keys: Keys, source: str) -> None:
    """Raise `BadInput` for layers that do not cost what attention does: linear attention, state spaces, recurrence.

    `source` names the configuration in messages.
    """
    types = {*map(str, keys.listed("layer_types"))} - {"full_attention", "sliding_attention", "chunked_attention"}
    if types:
        found = ", ".join(sorted(types))
        raise BadInput(f"{source}: layer_types: found {found}; allowed: full_attention, sliding_attention")
    if 0 in keys.listed("attn_type_list"):
        raise BadInput(
            f"{source}: attn_type_list: found 0, linear attention; allowed: 1, full attention, in all layers"
        )
