"""Positions of a model's expert layers: a number of leading dense layers, then every n-th layer has experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipesched.errors import BadInput
from pipesched.files.model_configs.model_config import Keys
from pipesched.files.schema_errors import shown

# One layer in so many has experts, counted from 1: the classes of Qwen, Llama 4 and ERNIE in transformers.
_FROM_ONE = ("decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval")
_FROM_ZERO = "moe_layer_freq"  # the same, counted from 0 (DeepSeek), or a 0 or 1 for each layer (MiMo)
ALLOWED = "dense layers first, then experts in each layer, or in every n-th"


def regular(has: Sequence[bool]) -> tuple[int, int] | None:
    """Return the number of leading dense layers and the period of expert layers after them; `has` has a flag by layer.

    The first layer after the dense ones has experts; where no layer has, all are leading dense ones and the period is
    1. Where one layer has, the period is the number of layers from it on. None where expert layers follow no such
    pattern.
    """
    where = [at for at, experts in enumerate(has) if experts]
    if not where:
        return len(has), 1
    every = where[1] - where[0] if len(where) > 1 else len(has) - where[0]
    return (where[0], every) if where == [*range(where[0], len(has), every)] else None


def grouped(groups: int | None, chosen: int | None) -> dict[str, int]:
    """Return the keys `groups` and `groups_per_token` of a plan file's section `experts`, by name.

    The experts of a token are from `chosen` of `groups` groups. Empty unless `chosen` is less than `groups`.
    """
    return {"groups": groups, "groups_per_token": chosen} if groups and chosen and groups > chosen else {}


def expert_layers(keys: Keys, config: Mapping[str, Any], first: int, layers: int, source: str) -> tuple[int, int]:
    """Return (number of leading dense layers, period of expert layers after them) of a Hugging Face configuration.

    `first` is the first layer with experts, from 0, where the configuration does not say, `layers` the number of
    transformer layers. `source` names the configuration in messages. `BadInput` for another pattern; a wrong number is
    added to the mistakes of `keys`.
    """
    last = config.get("moe_layer_end_index", -1)
    if last not in (-1, layers - 1):
        raise BadInput(f"{source}: moe_layer_end_index: found {shown(last)}; allowed: the last layer, or -1")
    start = "moe_layer_start_index"
    begin = keys.optional("first_k_dense_replace") or ((keys.optional(start) or 0) if start in config else first)
    dense = keys.listed("mlp_only_layers")
    turns = _by_period(keys, config, layers)
    has = [turn and at >= begin and at not in dense for at, turn in enumerate(turns)]
    if isinstance(config.get("moe_layers"), list):
        has = [at in config["moe_layers"] for at in range(layers)]
    found = regular(has)
    if found is None:
        key = "mlp_only_layers" if dense else "moe_layers"
        numbers = [at for at, experts in enumerate(has) if experts]
        raise BadInput(f"{source}: {key}: found experts in the layers {shown(numbers)}; allowed: {ALLOWED}")
    return found


def _by_period(keys: Keys, config: Mapping[str, Any], layers: int) -> list[bool]:
    """Return for each layer True if it has experts by the configuration's period (`decoder_sparse_step`) or list."""
    if isinstance(config.get(_FROM_ZERO), list):
        listed = config[_FROM_ZERO]
        return [at < len(listed) and listed[at] == 1 for at in range(layers)]
    steps, freq = [keys.optional(name) or 1 for name in _FROM_ONE], keys.optional(_FROM_ZERO) or 1
    return [at % freq == 0 and all((at + 1) % step == 0 for step in steps) for at in range(layers)]
