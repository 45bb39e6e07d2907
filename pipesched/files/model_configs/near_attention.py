"""Layers of a configuration whose attention is to near tokens alone: a sliding window, or chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.layer_pattern import listed, placed
from pipesched.files.model_configs.model_config import Keys
from pipesched.files.schema_errors import shown

# What files leave out, by `model_type`, in the classes of configurations of transformers: tokens of the window, and the
# period of full layers, the last of so many.
_TOKENS: Mapping[str, int] = {
    "mistral": 4096, "gemma2": 4096, "gemma3": 4096, "gemma3_text": 4096, "cohere2": 4096, "gpt_oss": 128,
    "olmo3": 4096, "dots1": 4096,
}  # fmt: skip
_FULL_EVERY: Mapping[str, int] = {
    "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2, "llama4_text": 4, "olmo3": 4, "exaone4": 4,
}  # fmt: skip
_PERIODS = ("sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval")
# A window only with `use_sliding_window: true`.
_ASKED = re.compile("qwen.*|smollm3|mimo")
# The first `max_window_layers` layers are full; so many where the file does not say.
_FIRST_FULL: Mapping[str, int] = {
    **dict.fromkeys(("qwen2", "qwen3", "qwen2_moe", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text",
                     "qwen3_vl_text", "mimo"), 28),
    "dots1": 62,
}  # fmt: skip
_FULL = "full_attention"
_PAIR = re.compile(r"[(\[]?\s*(-?\d+)\s*,\s*(-?\d+)\s*[)\]]?")


def of_hugging_face(keys: Keys, config: Mapping[str, Any], kind: str, layers: int, source: str) -> dict[str, Any]:
    """Return the keys `window` or `chunk`, and `full_layers`, of a model's attention; empty where all is full.

    `layer_types` says which layers are full, else a rule of the `model_type`. A list that does not fit the number of
    layers is added to the mistakes of `keys`. `kind` is the `model_type`, `layers` the number of layers, `source` the
    configuration's name for messages.
    """
    chunk = keys.optional("attention_chunk_size")
    window = keys.optional("sliding_window") if "sliding_window" in config else _TOKENS.get(kind)
    asked = config.get("use_sliding_window", _ASKED.fullmatch(kind) is None)
    if not (chunk or (window and asked)):
        return {}
    full = _full_layers(keys, config, kind, layers, source)
    return _keys("chunk" if chunk else "window", chunk or window or 0, full, layers)


def _full_layers(keys: Keys, config: Mapping[str, Any], kind: str, layers: int, source: str) -> list[int]:
    """Return the layers, from 0 and ascending, that attend to all tokens.

    `kind` is the `model_type`, `layers` the number of layers. A list that does not fit it is added to the mistakes of
    `keys`.
    """
    types, pattern, every = config.get("layer_types"), config.get(_PERIODS[0]), _FULL_EVERY.get(kind)
    if isinstance(types, list) and types:
        if len(types) != layers:
            keys.mistakes.append(f"{source}: layer_types: found {len(types)}; allowed: one for each of {layers} layers")
        return [at for at, one in enumerate(types) if one == _FULL]
    if kind in ("llama4_text", "smollm3"):
        # Of Llama 4 layers without positions (NoPE) are full, of SmolLM 3 those with.
        period = keys.optional(_PERIODS[2]) or 4
        rotated = keys.listed("no_rope_layers") or [int((at + 1) % period != 0) for at in range(layers)]
        if len(rotated) < layers:
            allowed = f"one for each of {layers} layers"
            keys.mistakes.append(f"{source}: no_rope_layers: found {len(rotated)}; allowed: {allowed}")
        return [at for at, rotates in enumerate(rotated[:layers]) if bool(rotates) == (kind == "smollm3")]
    if isinstance(pattern, str):  # EXAONE 4: L and G in turn, and the last layer is full
        turns = pattern or "G"
        return [at for at in range(layers) if turns[at % len(turns)] == "G" or at == layers - 1]
    if kind in _FIRST_FULL:
        given = "max_window_layers" in config
        first = (keys.optional("max_window_layers") or 0) if given else _FIRST_FULL[kind]
        return [*range(min(layers, first))]
    every = keys.optional(*_PERIODS) or every
    return [*range(every - 1, layers, every)] if every else []


def of_megatron(values: Mapping[str, Any], layers: int, source: str) -> dict[str, Any]:
    """Return the keys `window` and `full_layers` by Megatron's arguments; empty where all attention is full.

    These are `window_size`, the tokens before and after (the former -1: all), and `window_attn_skip_freq`, the period
    of full layers or a list with 1 for those with a window. `BadInput` for arguments that are neither, and for a period
    with a hybrid pattern, which numbers layers otherwise. `values` are the arguments by name, `source` names them in
    messages.
    """
    given = values.get("window_size")
    if given in (None, "", "None"):
        return {}
    pair = _PAIR.fullmatch(",".join(map(str, given)) if isinstance(given, list | tuple) else str(given))
    if pair is None:
        raise BadInput(f"{source}: window_size: found {shown(given)}; allowed: two whole numbers, such as 127,0")
    if int(pair[1]) < 0:
        return {}
    freq = values.get("window_attn_skip_freq")
    if freq in (None, "None"):
        return _keys("window", int(pair[1]) + 1, [], layers)
    if values.get("hybrid_layer_pattern") or values.get("hybrid_override_pattern"):
        raise BadInput(f"{source}: window_attn_skip_freq: found with a hybrid layer pattern; allowed: without")
    windowed = listed(freq)
    if windowed is None and str(freq).isdecimal() and int(str(freq)):
        windowed = [int((at + 1) % int(str(freq)) != 0) for at in range(layers)]
    if windowed is None or len(windowed) != layers:
        raise BadInput(
            f"{source}: window_attn_skip_freq: found {shown(freq)}; allowed: a whole number of at least 1, or a list "
            f"with 0 or 1 for each of the {layers} layers"
        )
    return _keys("window", int(pair[1]) + 1, [at for at, near in enumerate(windowed) if not near], layers)


def _keys(key: str, tokens: int, full: Sequence[int], layers: int) -> dict[str, Any]:
    """Return the keys of a plan file, with a period in place of a list of layers that is one; empty if all are full.

    `key` is `window` or `chunk`, `tokens` its value, and `full` are the layers, of `layers`, that attend to all tokens.
    """
    if len(full) >= layers:
        return {}
    return {key: tokens} | ({"full_layers": placed(full, layers)} if full else {})
