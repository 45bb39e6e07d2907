"""Layers of a configuration whose attention is to near tokens alone: a sliding window, or chunks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.model_config import Keys
from pipesched.files.schema_errors import shown

# By `model_type`: one layer in so many, the last of each, attends to all tokens where a file does not say (the classes
# of configurations in transformers).
_FULL_EVERY: Mapping[str, int] = {
    "gemma2": 2, "gemma3": 6, "gemma3_text": 6, "cohere2": 4, "gpt_oss": 2, "llama4_text": 4, "olmo3": 4, "exaone4": 4,
}  # fmt: skip
_PERIODS = ("sliding_window_pattern", "_sliding_window_pattern", "no_rope_layer_interval")
# Of these a window is used only with `use_sliding_window: true`, and only after `max_window_layers` layers.
_ASKED = re.compile("qwen.*|smollm3|mimo")
_MOST_FULL = 28  # `max_window_layers` where a file leaves it out
_SLIDING, _CHUNKED, _FULL = "sliding_attention", "chunked_attention", "full_attention"
_PAIR = re.compile(r"[(\[]?\s*(-?\d+)\s*,\s*(-?\d+)\s*[)\]]?")


def of_hugging_face(keys: Keys, config: Mapping[str, Any], kind: str, layers: int) -> dict[str, Any]:
    """Return the keys `window` or `chunk`, and `full_layers`, of a model's attention; empty where all is full.

    `layer_types` says which layers are full, else a period of the file or of its `model_type`. A window or chunk is in
    tokens; `full_layers` is the period of full layers, or a list of them. `kind` is the `model_type`.
    """
    chunk = keys.optional("attention_chunk_size")
    tokens = chunk or keys.optional("sliding_window")
    asked = config.get("use_sliding_window", _ASKED.fullmatch(kind) is None)
    if tokens is None or not (chunk or asked):
        return {}
    types, rotated, pattern = keys.listed("layer_types"), config.get("no_rope_layers"), config.get(_PERIODS[0])
    if types:
        full = [at for at, one in enumerate(types) if one == _FULL]
    elif chunk and isinstance(rotated, list) and rotated:  # Llama 4: layers without positions attend to all tokens
        full = [at for at, rotates in enumerate(rotated) if not rotates]
    elif isinstance(pattern, str):  # EXAONE 4: L and G in turn
        full = [at for at in range(layers) if pattern[at % len(pattern)] == "G"] if pattern else []
    elif _ASKED.fullmatch(kind):
        first = keys.optional("max_window_layers") or 0 if "max_window_layers" in config else _MOST_FULL
        full = [*range(min(layers, first))]
    else:
        every = keys.optional(*_PERIODS) or _FULL_EVERY.get(kind)
        full = [*range(every - 1, layers, every)] if every else []
    return _keys("chunk" if chunk else "window", tokens, full, layers)


def of_megatron(values: Mapping[str, Any], layers: int, source: str) -> dict[str, Any]:
    """Return the keys `window` and `full_layers` of a model's attention from Megatron's arguments; empty where all
    layers are full.

    `window_size` has the tokens before and after, and `window_attn_skip_freq` the period of full layers or a list with
    1 for those with a window. `BadInput`, which begins with `source`, for anything else.
    """
    given = values.get("window_size")
    if given in (None, "", "None"):
        return {}
    pair = _PAIR.fullmatch(" ".join(map(str, given)).replace(" ", ",") if isinstance(given, list) else str(given))
    if pair is None:
        raise BadInput(f"{source}: window_size: found {shown(given)}; allowed: two whole numbers, such as 127,0")
    if int(pair[1]) < 0:
        return {}
    freq = values.get("window_attn_skip_freq")
    windowed = _by_frequency(freq, layers)
    if windowed is None:
        raise BadInput(
            f"{source}: window_attn_skip_freq: found {shown(freq)}; allowed: a whole number of at least 1, or a list "
            f"with 0 or 1 for each of the {layers} layers"
        )
    return _keys("window", int(pair[1]) + 1, [at for at, near in enumerate(windowed) if not near], layers)


def _by_frequency(freq: object, layers: int) -> Sequence[bool] | None:
    """Return for each layer whether it has a window; None for a frequency that is none."""
    if freq is None or freq == "None":
        return [True] * layers
    if not isinstance(freq, list):
        text = str(freq)
        if text.isdecimal() and int(text):
            return [(at + 1) % int(text) != 0 for at in range(layers)]
        parts = [re.fullmatch(r"\s*\(?\s*\[([01,\s]*)\]\s*(?:\*\s*(\d+))?\s*\)?\s*", one) for one in text.split("+")]
        if not all(parts):
            return None
        freq = [one for part in parts if part for one in re.findall("[01]", part[1]) * int(part[2] or 1)]
    found = [str(one) == "1" for one in freq]
    return found if len(found) == layers else None


def _keys(key: str, tokens: int, full: Sequence[int], layers: int) -> dict[str, Any]:
    """Return the keys of a plan file, with a period in place of a list of layers that is one; empty if all are full."""
    if len(full) == layers:
        return {}
    every = full[0] + 1 if full else 0
    regular = bool(full) and [*full] == [*range(full[0], layers, every)]
    return {key: tokens} | ({"full_layers": every if regular else [*full]} if full else {})
