"""Megatron's arguments of hybrid models: a pattern of layers, Mamba 2, gated delta nets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pipesched.errors import BadInput
from pipesched.files.model_configs.expert_layers import regular
from pipesched.files.model_configs.layer_pattern import listed, placed
from pipesched.files.model_configs.model_config import Keys, without_none
from pipesched.files.schema_errors import shown

_PATTERNS = ("hybrid_layer_pattern", "hybrid_override_pattern")
_ATTENTION = "*+D"
_VARIANTS = ("gated_delta_net", "gdn")


class Layers(NamedTuple):
    """A hybrid layer pattern of Megatron's arguments.

    `layers` is the number of layers, `dense` that of leading dense ones, `every` the period of layers with experts
    after these, `prediction` the number of multi-token prediction layers. `pattern` has a letter for each layer if each
    layer is a single part, and `dense` and `every` are then 0 and 1; it is empty where each is an attention and a
    block.
    """

    layers: int
    dense: int
    every: int
    prediction: int
    pattern: str = ""


def layers_of(values: Mapping[str, Any], source: str) -> Layers | None:
    """Return what the arguments' hybrid layer pattern says.

    None without one. `BadInput` for a pattern that is wrong or not supported. `values` are the arguments by name,
    `source` names them in messages.
    """
    for name in _PATTERNS:
        if values.get(name):
            return _read(str(values[name]).strip().strip("'\""), source, name)
    return None


def _read(pattern: str, source: str, name: str) -> Layers:
    """Return the layers of a pattern: attention (`*`, latent `+`, sparse `D`), Mamba `M`, gated delta net `G`, MLP `-`
    or experts `E`; after each `/` a multi-token prediction layer.

    Bars between stages are ignored, since the plan decides them. Pairs of attention and block are one layer, where all
    are such and experts follow dense blocks regularly. `BadInput` for other letters, two kinds of mixers or attention,
    or another layer after a `/`. `name` is the argument that gives the pattern, `source` the file, for messages.
    """
    main, *mtp = pattern.split("/")
    letters = main.replace("|", "")
    strange = next((one for one in letters if one not in "MG*+D-E"), None)
    if strange is not None or not letters:
        found = f"{source}: {name}: found {shown(strange or pattern)}"
        raise BadInput(f"{found}; allowed: M (Mamba), G (gated delta net), * + D (attention), - (MLP), E (experts)")
    if {"M", "G"} <= {*letters}:
        raise BadInput(f"{source}: {name}: found M and G; allowed: one kind of mixer in a model")
    if {"+", "D"} & {*letters} and "*" in letters:
        raise BadInput(f"{source}: {name}: found * with latent attention; allowed: one kind of attention in a model")
    depths = [one for one in mtp if one]
    pairs = re.fullmatch(r"([*+D][-E])+", letters)
    found_experts = regular([one == "E" for one in letters[1::2]]) if pairs else None
    last = letters[-2:] if pairs else f"{_attention_of(letters)}{'E' if 'E' in letters else '-'}"
    if any(one != last for one in depths):
        raise BadInput(f"{source}: {name}: found {shown(pattern)}; allowed behind each /: {last}, as pipesched counts")
    if found_experts is not None:
        return Layers(len(letters) // 2, *found_experts, len(depths))
    plain = re.sub(r"[+D]", "*", letters)
    return Layers(len(plain), 0, 1, len(depths), plain)


def _attention_of(letters: str) -> str:
    return next((one for one in letters if one in _ATTENTION), "*")


def mixer_of(keys: Keys, values: Mapping[str, Any], hidden: int, layers: int, pattern: str) -> dict[str, Any] | None:
    """Return the keys of the section `mixer` that the arguments describe, by name; None for a model without a mixer.

    `values` are the arguments by name, `hidden` is the hidden size, `layers` the number of layers. With a hybrid
    `pattern` (else empty) the mixer is that of its letters; else linear attention is in all layers but those of
    `linear_attention_freq`. Wrong values are added to the mistakes of `keys`.
    """
    if "M" in pattern:
        size = keys.number("mamba_head_dim", default=64)
        return {
            "kind": "mamba2", "heads": keys.number("mamba_num_heads", default=2 * hidden // size),
            "key_heads": keys.number("mamba_num_groups", default=8),
            "key_size": keys.number("mamba_state_dim", default=128), "value_size": size,
        }  # fmt: skip
    if "G" not in pattern and not is_linear(values):
        return None
    places = {} if pattern else _full_layers(keys, values, layers)
    return {
        "kind": "gated_delta", "heads": keys.number("linear_num_value_heads", default=32),
        "key_heads": keys.number("linear_num_key_heads", default=16),
        "key_size": keys.number("linear_key_head_dim", default=128),
        "value_size": keys.number("linear_value_head_dim", default=128),
        "convolution": keys.number("linear_conv_kernel_dim", default=4),
    } | places  # fmt: skip


def is_linear(values: Mapping[str, Any]) -> bool:
    """Return True if the arguments ask for gated delta nets in place of attention."""
    return any(
        str(values.get(name)) in _VARIANTS for name in ("experimental_attention_variant", "linear_attention_type")
    )


def _full_layers(keys: Keys, values: Mapping[str, Any], layers: int) -> dict[str, Any]:
    """Return the key `attention_layers` for the layers with attention.

    They are one in so many, the last of each, or those with 0 in a list. Empty if no layer has attention. A wrong value
    is added to the mistakes of `keys`.
    """
    name, given = "linear_attention_freq", values.get("linear_attention_freq")
    linear = listed(given)
    if linear is None and str(given).isdecimal() and int(str(given)):
        linear = [int((at + 1) % int(str(given)) != 0) for at in range(layers)]
    if linear is None or len(linear) != layers:
        allowed = f"a whole number of at least 1, or a list with 0 or 1 for each of the {layers} layers"
        keys.mistakes.append(f"{keys.source}: {name}: found {shown(given)}; allowed: {allowed}")
        return {}
    full = [at for at, mixes in enumerate(linear) if not mixes]
    return without_none({"attention_layers": placed(full, layers)})
