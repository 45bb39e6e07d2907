"""The key `layers` of a plan file as text: YAML, one layer entry on a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor

from pipesched.files.plans.features.catalogue import PLAN_FEATURES
from pipesched.layers.layer import LayerType, RecomputeMode

# Digits after the point of numbers that do not end within as many as the second.
_DIGITS, _MOST_DIGITS = 6, 20


def layers_text(layers: Sequence[LayerType], timed: bool = True) -> str:
    """Return the YAML lines of a plan file for these layer types, from `layers:` on.

    Keys with default values are left out. Numbers without a short decimal form are rounded up, `freed_by_backward`
    down. With `timed` False, times are unknown: `forward` and `backward` are left out for the user to add.
    """
    return "\n".join(["layers:", *(f"  - {_mapping(_entry(layer, timed))}" for layer in layers)]) + "\n"


def _entry(layer: LayerType, timed: bool) -> Iterator[tuple[str, str]]:
    zero = Fraction(0)
    yield "name", layer.name
    if layer.count != 1:
        yield "count", str(layer.count)
    if timed:
        yield "forward", number_text(layer.forward)
        yield "backward", number_text(layer.backward)
    for key, value in (("weight", layer.weight), ("fused", layer.fused)):
        if value is not None:
            yield key, number_text(value)
    for key, value in (("memory", layer.memory), ("activation", layer.activation)):
        if value:
            yield key, number_text(value)
    if layer.freed_by_backward != zero:
        yield "freed_by_backward", number_text(layer.freed_by_backward, up=False)
    if layer.recompute:
        yield "recompute", f"[{', '.join(map(_mode, layer.recompute))}]"
    for feature in PLAN_FEATURES:
        for key, value in feature.layer_written(layer).items():
            yield key, "true" if value is True else number_text(value)
    if layer.with_previous:
        yield "with_previous", "true"


def _mode(mode: RecomputeMode) -> str:
    return _mapping([("name", mode.name), ("time", number_text(mode.time)), ("keeps", number_text(mode.keeps))])


def _mapping(items: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in items) + "}"


def number_text(number: Fraction, up: bool = True) -> str:
    """Return a number as decimal text.

    Exact if it ends within 20 decimals, as derived amounts do, else rounded up to six (down without `up`).
    """
    digits = _MOST_DIGITS if 10**_MOST_DIGITS % number.denominator == 0 else _DIGITS
    scaled = number * 10**digits
    text = format(Decimal(f"{ceil(scaled) if up else floor(scaled)}e-{digits}"), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
