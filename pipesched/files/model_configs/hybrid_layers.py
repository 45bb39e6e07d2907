"""Hybrid models of transformers: layers with state spaces or linear attention, and which layers these are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipesched.files.model_configs.expert_layers import ALLOWED, regular
from pipesched.files.model_configs.layer_pattern import placed
from pipesched.files.model_configs.model_config import Keys, without_none
from pipesched.files.schema_errors import shown

# Words of `layer_types`, `layers_block_type` for layers with attention, and letters for those of one part.
_FULL = ("full_attention", "attention")
_LETTERS = {
    "mamba": "M", "linear_attention": "M", "attention": "*", "full_attention": "*", "mlp": "-", "moe": "E",
}  # fmt: skip


@dataclass(frozen=True)
class Hybrid:
    """Keys of a plan file's section `model` that a hybrid model has in addition to those of a transformer.

    `mixer`, `attention` and `experts` have keys of the sections of these names. `pattern` has a letter for each layer
    if each layer is a single part, else it is None. `has_experts` says that some layers have experts; `expert_layers`
    places them, by the number of leading dense layers and the period, and is None where the usual keys do so.
    """

    mixer: Mapping[str, Any]
    has_experts: bool
    attention: Mapping[str, Any] = field(default_factory=dict)
    experts: Mapping[str, Any] = field(default_factory=dict)
    pattern: str | None = None
    expert_layers: tuple[int, int] | None = None


@dataclass(frozen=True)
class _Read:
    """A configuration, its number of `layers` and the `hidden` size; `source` names it in messages.

    `keys` reads the numbers of `config`, and collects the mistakes.
    """

    keys: Keys
    config: Mapping[str, Any]
    hidden: int
    layers: int
    source: str

    def places(self, *names: str) -> Sequence[str] | None:
        """Return the list under the first of these names that is given, as text by layer; None without one.

        A list of another length than the number of layers is added to the mistakes, and cut off if longer.
        """
        for name in names:
            found = self.keys.listed(name)
            if found and len(found) != self.layers:
                allowed = f"one for each of {self.layers} layers"
                self.keys.mistakes.append(f"{self.source}: {name}: found {len(found)}; allowed: {allowed}")
            if found:
                return [str(one) for one in found[: self.layers]]
        return None

    def size(self, name: str, usual: int) -> int:
        """Return a size, or the usual one where it is missing, null or `auto`."""
        return usual if self.config.get(name) == "auto" else self.keys.optional(name) or usual

    def multiple(self, name: str, ffn: int) -> int | None:
        """Return how many experts of width `ffn` the shared ones are, whose width is under `name`; None for none.

        A width that is no multiple of `ffn` is added to the mistakes.
        """
        width = self.keys.optional(name) or 0
        if width % ffn:
            self.keys.mistakes.append(f"{self.source}: {name}: found {width}; allowed: a multiple of {ffn}")
        return width // ffn or None


def _with_attention(read: _Read, full: Sequence[int]) -> dict[str, Any]:
    return without_none({"attention_layers": placed(full, read.layers)})


def _gated_delta(read: _Read) -> Hybrid:
    keys, types = read.keys, read.places("layer_types")
    every = keys.optional("full_attention_interval") or 4
    full = range(every - 1, read.layers, every)
    mixer = {
        "kind": "gated_delta", "heads": keys.number("linear_num_value_heads", default=32),
        "key_heads": keys.number("linear_num_key_heads", default=16),
        "key_size": keys.number("linear_key_head_dim", default=128),
        "value_size": keys.number("linear_value_head_dim", default=128),
        "convolution": keys.number("linear_conv_kernel_dim", default=4),
    }  # fmt: skip
    places = full if types is None else [at for at, one in enumerate(types) if one in _FULL]
    experts = bool(keys.optional("num_experts"))
    return Hybrid(
        mixer | _with_attention(read, places), experts, {"gated": True, "normalized": True},
        without_none({"biased": False, "shared_gate": bool(keys.optional("shared_expert_intermediate_size")) or None}),
    )  # fmt: skip


def _kimi_delta(read: _Read) -> Hybrid:
    own = read.config.get("linear_attn_config")
    given = own if isinstance(own, Mapping) else {}
    keys = Keys(f"{read.source}: linear_attn_config", given)
    types = read.places("layer_types")
    listed = [one - 1 for one in keys.listed("full_attn_layers") if isinstance(one, int) and 0 < one <= read.layers]
    places = listed if types is None else [at for at, one in enumerate(types) if one in _FULL]
    mixer = {
        "kind": "kimi_delta", "heads": keys.number("num_heads", default=32),
        "key_size": keys.number("head_dim", default=128),
        "convolution": keys.number("short_conv_kernel_size", default=4),
    }  # fmt: skip
    read.keys.mistakes.extend(keys.mistakes)
    return Hybrid(mixer | _with_attention(read, places), True)


def _lightning(read: _Read) -> Hybrid:
    keys, types = read.keys, read.places("layer_types", "attn_type_list")
    full = [at for at, one in enumerate(types or ()) if one in (*_FULL, "1")]
    heads = keys.number("num_attention_heads")
    mixer = {
        "kind": "lightning", "heads": heads, "key_size": read.size("head_dim", read.hidden // heads),
        "convolution": 0, "chunk": keys.number("block_size", default=256),
    }  # fmt: skip
    return Hybrid(mixer | _with_attention(read, full), True, experts={"biased": False})


def _mamba2(read: _Read, **more: Any) -> dict[str, Any]:
    keys, inner = read.keys, read.size("mamba_expand", 2) * read.hidden
    heads = keys.number("mamba_n_heads", default=128)
    return {
        "kind": "mamba2", "heads": heads, "key_heads": keys.number("mamba_n_groups", default=1),
        "key_size": keys.number("mamba_d_state", default=256),
        "value_size": read.size("mamba_d_head", (keys.optional("mamba_d_ssm") or inner) // heads),
        "convolution": keys.number("mamba_d_conv", default=4), "chunk": keys.number("mamba_chunk_size", default=256),
    } | more  # fmt: skip


def _granite(read: _Read) -> Hybrid:
    types, experts = read.places("layer_types", "layers_block_type"), read.keys.optional("num_local_experts")
    full = [at for at, one in enumerate(types or ()) if one in _FULL]
    own: dict[str, Any] = {"biased": False}
    if experts:
        own["shared"] = read.multiple("shared_intermediate_size", read.keys.number("intermediate_size"))
    return Hybrid(_mamba2(read) | _with_attention(read, full), bool(experts), experts=without_none(own))


def _bamba(read: _Read) -> Hybrid:
    types = read.places("layer_types")
    listed = [one for one in read.keys.listed("attn_layer_indices") if isinstance(one, int) and 0 <= one < read.layers]
    full = listed if types is None else [at for at, one in enumerate(types) if one in _FULL]
    return Hybrid(_mamba2(read) | _with_attention(read, full), False)


def _falcon(read: _Read) -> Hybrid:
    normalized = {} if read.config.get("mamba_rms_norm") else {"normalized": False}
    return Hybrid(_mamba2(read, parallel=True, **normalized), False)


def _jamba(read: _Read) -> Hybrid:
    keys, types = read.keys, read.places("layers_block_type", "layer_types")
    every, first = keys.optional("attn_layer_period") or 8, keys.optional("attn_layer_offset") or 0
    full = range(first, read.layers, every) if types is None else [at for at, one in enumerate(types) if one in _FULL]
    mixer = {
        "kind": "mamba1", "heads": read.size("mamba_expand", 2) * read.hidden,
        "key_size": keys.number("mamba_d_state", default=16), "convolution": keys.number("mamba_d_conv", default=4),
        "rank": read.size("mamba_dt_rank", -(-read.hidden // 16)),
    }  # fmt: skip
    period, offset = keys.optional("expert_layer_period") or 2, keys.optional("expert_layer_offset") or 0
    experts = (keys.optional("num_experts") or 1) > 1
    places = regular([at % period == offset for at in range(read.layers)])
    if experts and places is None:
        found = f"expert_layer_offset: found {offset} of {period}"
        keys.mistakes.append(f"{read.source}: {found}; allowed: {ALLOWED}")
    return Hybrid(
        mixer | _with_attention(read, full), experts, experts={"biased": False}, expert_layers=places or (0, 1)
    )


def _nemotron(read: _Read) -> Hybrid:
    keys, given = read.keys, read.config.get("hybrid_override_pattern")
    types = read.places("layers_block_type", "layer_types")
    pattern = str(given) if given and types is None else "".join(_LETTERS.get(one, "?") for one in types or ())
    if "?" in pattern or not pattern:
        found = next((one for one in types or () if one not in _LETTERS), "none")
        allowed = f"{', '.join(_LETTERS)}, or hybrid_override_pattern"
        keys.mistakes.append(f"{read.source}: layers_block_type: found {shown(found)}; allowed: {allowed}")
    mixer = {
        "kind": "mamba2", "heads": keys.number("mamba_num_heads"),
        "key_heads": keys.number("n_groups", "mamba_n_groups", default=8),
        "key_size": keys.number("ssm_state_size", default=128), "value_size": keys.number("mamba_head_dim", default=64),
        "convolution": keys.number("conv_kernel", "mamba_d_conv", default=4),
        "chunk": keys.number("chunk_size", "mamba_chunk_size", default=128),
    }  # fmt: skip
    attention = without_none({"head_size": keys.optional("head_dim", "attention_head_dim")})
    if "E" not in pattern:
        return Hybrid(mixer, False, attention, pattern=pattern)
    shared = read.multiple("moe_shared_expert_intermediate_size", keys.number("moe_intermediate_size"))
    experts = without_none({"shared": shared, "latent": keys.optional("moe_latent_size")})
    return Hybrid(mixer, True, attention, experts, pattern)


_MODELS: Mapping[str, Callable[[_Read], Hybrid]] = {
    **dict.fromkeys(("qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"), _gated_delta),
    **dict.fromkeys(("minimax", "minimax_text_01", "minimax_m1"), _lightning),
    "kimi_linear": _kimi_delta, "granitemoehybrid": _granite, "bamba": _bamba, "falcon_h1": _falcon, "jamba": _jamba,
    "nemotron_h": _nemotron,
}  # fmt: skip
HYBRIDS = tuple(_MODELS)


def of_hugging_face(
    keys: Keys, config: Mapping[str, Any], kind: str, hidden: int, layers: int, source: str
) -> Hybrid | None:
    """Return what a Hugging Face configuration says of a hybrid model; None if its model is not one.

    `kind` is its `model_type`, `hidden` the hidden size, `layers` the number of layers, `source` the configuration's
    name in messages. Mistakes are added to those of `keys`.
    """
    return _MODELS[kind](_Read(keys, config, hidden, layers, source)) if kind in _MODELS else None
