"""Megatron's arguments of number formats: products in 8 or 4 bits, and layers and parts that stay in 16."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipesched.files.model_configs.model_config import Keys

_OFF = ("", "none", "null", "false", "0")


def formats_of(keys: Keys, values: Mapping[str, Any], layers_of_one: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the keys `dtype`, `precision` and `weight_bytes` of the section `model` by the arguments, and notes.

    Notes are on what is left out; no keys for products in 16 bits. `values` are the arguments by name; Megatron counts
    each layer of the model as `layers_of_one`, 1 or 2. Wrong values are added to the mistakes of `keys`.
    """
    if _on(values, "fp4_format", "fp4"):
        dtype = "nvfp4"
    elif _on(values, "fp8_format", "fp8"):
        dtype = "mxfp8" if str(values.get("fp8_recipe")) == "mxfp8" else "fp8"
    else:
        return {}, ()
    precision: dict[str, Any] = {}
    if _on(values, "first_last_layers_bf16"):
        for key, name in (
            ("first_layers", "num_layers_at_start_in_bf16"),
            ("last_layers", "num_layers_at_end_in_bf16"),
        ):
            number = (keys.optional(name) or 0) if name in values else 1
            precision |= {key: number // layers_of_one} if number >= layers_of_one else {}
    if _on(values, "fp8_output_proj"):
        precision["head"] = dtype
    if _on(values, "keep_mtp_spec_in_bf16") and keys.optional("mtp_num_layers"):
        precision["mtp"] = "bf16"
    file = next((name for name in ("te_precision_config_file", "kitchen_config_file") if _on(values, name)), None)
    notes = [f"{file}: formats of single products are in that file: say them in model.precision"] if file else []
    found: dict[str, Any] = {"dtype": dtype} | ({"precision": precision} if precision else {})
    four = next((name for name in ("fp4_param_gather", "fp4_param") if _on(values, name)), None)
    if four and dtype == "nvfp4":  # Transformer Engine keeps rows and columns apart: 9 / 16 bytes a number each.
        found["weight_bytes"] = 1
        notes.append(f"{four}: weights are counted in 8 bits: two copies in 4, of which one is gathered")
    elif gathered := next((name for name in ("fp8_param_gather", "fp8_param") if _on(values, name)), None):
        if dtype == "fp8":
            found["weight_bytes"] = 1
        else:  # Megatron gathers weights of MXFP8 in 16 bits, and casts each to two copies.
            notes.append(f"{gathered}: weights are counted in 16 bits")
    return found, tuple(notes)


def _on(values: Mapping[str, Any], *names: str) -> bool:
    return any(str(values.get(name, "")).strip().lower() not in _OFF for name in names)
