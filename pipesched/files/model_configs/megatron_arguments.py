"""Megatron's arguments: as a shell script has them (`--num-layers 32`), or as YAML of Megatron-Bridge and NeMo."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.file_names import stem_of
from pipesched.files.model_configs.expert_layers import ALLOWED, grouped, regular
from pipesched.files.model_configs.layer_pattern import check_layers, listed
from pipesched.files.model_configs.megatron_architecture import check_architecture
from pipesched.files.model_configs.megatron_formats import formats_of
from pipesched.files.model_configs.megatron_hybrid import layers_of, mixer_of
from pipesched.files.model_configs.model_config import Keys, ModelConfig, without_none
from pipesched.files.model_configs.near_attention import of_megatron as near_attention
from pipesched.files.model_configs.overlap_options import hidden_shares

_ASSIGNED = re.compile(r"^\s*(?:export\s+|local\s+)?([A-Za-z_]\w*)=(\"[^\"]*\"|'[^']*'|[^\s;()]*)\s*;?\s*(?:#.*)?$")
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?::?-([^}]*))?\}|\$([A-Za-z_]\w*)")
# A value of Primus's files that the environment may replace: `${NAME:4096}`.
_WITH_DEFAULT = re.compile(r"\$\{\w+:([^}]*)\}")
# An option of DeepSpeed's configuration, which scripts write into a file.
_OVERLAP_COMM = re.compile(r"\"overlap_comm\"\s*:\s*(true|false)")
# Of options in one string, over one line or several: what stands before the first.
_STRING = re.compile(r"^\s*(?:export\s+|local\s+)?[A-Za-z_]\w*=[\"']")

# Tokens of tokenizers that are nearly always used with the files they were published with (GPT-2, BERT).
_TOKENIZERS = {"GPT2BPETokenizer": 50257, "BertWordPieceLowerCase": 30522, "BertWordPieceCase": 28996}


def arguments_of(script: str) -> dict[str, Any]:
    """Return the options of a shell script by name, with `_` for dashes, as text; one without a value is True.

    Of several values an option has the first; of an option given twice the last counts. Variables that the script sets
    are expanded. Of a configuration of DeepSpeed that it writes, `overlap_comm` is among the options.
    """
    variables: dict[str, str] = {}
    lines = script.replace("\\\n", " ").splitlines()
    for line in lines:
        if match := _ASSIGNED.match(line):
            variables[match[1]] = _put_in(match[2].strip("\"'"), variables)
    found: dict[str, Any] = {}
    for line in lines:
        words = [*_words(_put_in(_STRING.sub("", line), variables))]
        for at, word in enumerate(words):
            if word.startswith("--") and len(word) > 2:
                name, equals, value = word[2:].partition("=")
                follows = words[at + 1] if at + 1 < len(words) else "--"
                found[name.replace("-", "_")] = value if equals else True if follows.startswith("--") else follows
    if found.get("deepspeed") and (written := _OVERLAP_COMM.search(script)):
        found["overlap_comm"] = written[1]
    return found


def is_whole_job(values: Mapping[str, Any]) -> bool:
    """Return True if a script's options are not those of the model alone, but also those of its training.

    These have the size of a micro-batch or of the batch.
    """
    return any(name in values for name in ("micro_batch_size", "global_batch_size"))


def _words(line: str) -> Iterator[str]:
    """Yield the words of a shell line, without comments and brackets of arrays.

    `"--name value"` in quotes gives two.
    """
    try:
        for word in shlex.split(line, comments=True):
            yield from map(_unbracketed, word.split() if word.startswith("--") else [word])
    except ValueError:  # a quotation over several lines
        yield from (_unbracketed(word.strip("\"'")) for word in line.split())


def _unbracketed(word: str) -> str:
    """Return a word without brackets of an array that begin or end there; brackets of a list in it stay."""
    return word if "[" in word and word.count("(") == word.count(")") else word.strip("()")


def _put_in(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[3], match[2] or ""), text)


def flattened(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values of a nested document by their last key; of equal keys the first that has a value.

    Dashes in keys become `_`. A value such as `${NAME:4096}` is replaced by its default.
    """
    found: dict[str, Any] = {}
    for key, value in document.items():
        default = _WITH_DEFAULT.fullmatch(value) if isinstance(value, str) else None
        own = value if default is None else default[1]
        inner = flattened(own) if isinstance(own, Mapping) else {str(key).lstrip("-").replace("-", "_"): own}
        found = inner | {name: one for name, one in found.items() if one is not None or inner.get(name) is None}
    return found


def from_megatron(values: Mapping[str, Any], source: str, all_options: bool = False) -> ModelConfig:
    """Return the model and training settings that Megatron's arguments describe.

    `values` are the arguments by name, `source` names them in messages, and the model if no argument does.
    `all_options`: they are those of a whole job of Megatron-LM, so that options which are not there have their
    defaults. `BadInput` for arguments that change layers beyond the keys of `model`, and for missing or wrong ones;
    other parts left out are in `notes`.
    """
    notes = list(check_architecture(values, source))
    keys = Keys(source, values)
    hidden, heads = keys.number("hidden_size"), keys.number("num_attention_heads")
    gated = _on(values, "swiglu", "gated_linear_unit", "quick_geglu")
    inner = keys.optional("ffn_hidden_size") or (4 * hidden if not gated else round(8 * hidden / 3))
    number = keys.optional("num_experts", "num_moe_experts")
    hybrid = layers_of(values, source)
    layers = keys.number("num_layers", "encoder_num_layers") if hybrid is None else hybrid.layers
    check_layers(layers, source)
    pattern = "" if hybrid is None else hybrid.pattern
    mixer = mixer_of(keys, values, hidden, layers, pattern)
    own = {"gated": _on(values, "attention_output_gate") or None} if mixer else {}
    model: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "vocabulary": _vocabulary(keys, values, source, notes),
        "attention": _attention(keys, values, heads) | without_none(own) | near_attention(values, layers, source),
        "mixer": mixer,
        "pattern": pattern or None,
        "gated": None if gated else False,
        "mtp_layers": (hybrid.prediction if hybrid else None) or keys.optional("mtp_num_layers"),
        "tied": None if _untied(values) else True,
    }
    dense, every = layers, 1
    if hybrid is not None:
        dense, every = hybrid.dense, hybrid.every
        if number is None and ("E" in pattern if pattern else dense < layers):
            keys.mistakes.append(f"{source}: num_experts: missing; it is required with E in the pattern of layers")
    elif number is not None:
        dense, every = _expert_layers(values, layers, source)
    if number is not None and (not pattern or "E" in pattern):
        ffn = keys.optional("moe_ffn_hidden_size") or inner
        shared = keys.optional("moe_shared_expert_intermediate_size") or 0
        if shared % ffn:
            keys.mistakes.append(
                f"{source}: moe_shared_expert_intermediate_size: found {shared}; allowed: a multiple of {ffn}"
            )
        model["experts"] = without_none({
            "number": number, "per_token": keys.number("moe_router_topk", default=2), "shared": shared // ffn or None,
            "ffn": ffn, "latent": keys.optional("moe_latent_size"),
            "shared_gate": (mixer is not None and shared >= ffn and _on(values, "moe_shared_expert_gate")) or None,
            "biased": None if mixer is None or _on(values, "moe_router_enable_expert_bias") else False,
            **grouped(keys.optional("moe_router_num_groups"), keys.optional("moe_router_group_topk")),
        })  # fmt: skip
        model["experts_every"] = every if every > 1 else None
        model["dense_layers"] = dense or None
    formats, left_out = formats_of(keys, values, 2 if hybrid is not None and not pattern else 1)
    model, notes = model | formats, [*notes, *left_out]
    predicted = model["mtp_layers"] and "experts" not in model  # by an attention and a block
    model["ffn"] = inner if ("-" in pattern or predicted if pattern else dense or every > 1) else None
    settings = {
        "sequence": keys.optional("seq_length", "encoder_seq_length"),
        "microbatch_size": keys.optional("micro_batch_size"),
        "devices": keys.optional("pipeline_model_parallel_size"),
        "tensor": keys.optional("tensor_model_parallel_size"),
        "context": keys.optional("context_parallel_size"),
        "expert": keys.optional("expert_model_parallel_size"),
        "data": keys.optional("data_parallel_size"),  # of logs
        "microbatches": keys.optional("num_microbatches"),
    }
    longest = keys.optional("max_position_embeddings")
    keys.check()
    name = str(values.get("name") or stem_of(source))
    shares = hidden_shares(values, all_options)
    return ModelConfig(name, without_none(model), without_none(settings), longest, tuple(notes), hidden=shares)


def _vocabulary(keys: Keys, values: Mapping[str, Any], source: str, notes: list[str]) -> int:
    """Return the size of the vocabulary in tokens: padded size, `vocab_size`, or that of a known tokenizer, padded.

    Padding is Megatron's. An assumed tokenizer size is added to `notes`. If no size is known, that is a mistake, and
    the result is 1. `values` are the arguments by name, `source` names them in messages.
    """
    known = keys.optional("padded_vocab_size", "vocab_size")
    tokenizer = str(values.get("tokenizer_type") or ("GPT2BPETokenizer" if values.get("merge_file") else ""))
    if known is not None:
        return known
    if tokenizer not in _TOKENIZERS:
        named = f" of {tokenizer}" if tokenizer else ""
        keys.mistakes.append(
            f"{source}: vocab_size: missing; it is required{named}, by --vocabulary N where the file has none"
        )
        return 1
    multiple = (keys.optional("make_vocab_size_divisible_by") or 128) * (
        keys.optional("tensor_model_parallel_size") or 1
    )
    padded = -(-_TOKENIZERS[tokenizer] // multiple) * multiple
    notes.append(f"vocab_size: assumed {_TOKENIZERS[tokenizer]}, of {tokenizer}'s usual files, padded to {padded}")
    return padded


def _attention(keys: Keys, values: Mapping[str, Any], heads: int) -> dict[str, int]:
    pattern = str(values.get("hybrid_layer_pattern") or values.get("hybrid_override_pattern") or "")
    if _on(values, "multi_latent_attention") or set(pattern) & {"+", "D"}:
        return without_none({
            "heads": heads, "query_rank": keys.optional("q_lora_rank"),
            "kv_rank": keys.number("kv_lora_rank", default=32),
            "key_size": keys.number("qk_head_dim", default=128),
            "rope_size": keys.number("qk_pos_emb_head_dim", default=64),
            "value_size": keys.number("v_head_dim", default=128),
        })  # fmt: skip
    grouped = _on(values, "group_query_attention") or "group_query_attention" not in values
    groups = keys.optional("num_query_groups") if grouped else None
    return without_none({"heads": heads, "kv_heads": groups, "head_size": keys.optional("kv_channels")})


def _on(values: Mapping[str, Any], *names: str) -> bool:
    return any(str(values.get(name, False)).lower() in ("true", "1") for name in names)


def _untied(values: Mapping[str, Any]) -> bool:
    shared = values.get("share_embeddings_and_output_weights")
    return _on(values, "untie_embeddings_and_output_weights") or str(shared).lower() == "false"


def _expert_layers(values: Mapping[str, Any], layers: int, source: str) -> tuple[int, int]:
    """Return the number of leading dense layers, and the period of expert layers after them, from `moe_layer_freq`.

    Megatron's argument is a period, of layers counted from 0, or a list such as `([0]*3+[1]*58)`. `BadInput` for
    another pattern. `values` are the arguments by name, `layers` is the number of layers, and `source` names the
    arguments in messages.
    """
    text = str(values.get("moe_layer_freq", 1)).replace(" ", "")
    has = listed(values.get("moe_layer_freq"))
    if has is None and text.isdecimal() and int(text) > 0:
        has = [int(at % int(text) == 0) for at in range(layers)]
    found = None if has is None or len(has) != layers else regular([one == 1 for one in has])
    if found is None:
        numbers = f"a number, or a 0 or 1 for each of {layers} layers"
        raise BadInput(f"{source}: moe_layer_freq: found {text}; allowed: {numbers}: {ALLOWED}")
    return found
