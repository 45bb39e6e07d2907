"""Notations of numbers in the file of a plain document: one for all its times and amounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

Number = Callable[[Fraction], Any]
# The keys under which there are times, and amounts of memory; and what stands among them and is neither.
_TIMES = (
    "times",
    "time",
    "out",
    "in",
    "transfer",
    "forward",
    "backward",
    "weight",
    "fused",
    "stage_overhead",
    "overhead",
)
_LAYER_TIMES = ("gather", "reduce", "step")
_AMOUNTS = (
    "capacity",
    "static",
    "activation",
    "freed_by_backward",
    "kept_for_later",
    "amount",
    "gathered",
    "host_capacity",
)
# Sections of amounts whose keys are those of times elsewhere.
_OF_AMOUNTS = ("workspace", "until_end")
_NEITHER = frozenset(
    [
        "nodes",
        "devices",
        "on",
        "to",
        "name",
        "unit",
        "after",
        "needs",
        "keep",
        "every",
        "most",
        "buckets",
        "feeds",
        "follows",
        "barriers",
        "serves",
        "size",
        "frozen",
        "placement",
        "stages",
        "holders",
        "count",
        "decide",
        "model",
        "hardware",
        "attention",
        "attention_backward",
    ]
)


def with_numbers(document: Any, time: Number, amount: Number, kind: str = "", path: tuple[str, ...] = ()) -> Any:
    """The document with every time and amount replaced; `kind` is that of what is above."""
    if isinstance(document, Mapping):
        return {
            key: with_numbers(value, time, amount, _kind(key, value, kind, path), (*path, key))
            for key, value in document.items()
        }
    if isinstance(document, list):
        return [with_numbers(one, time, amount, kind, path) for one in document]
    if isinstance(document, bool) or not isinstance(document, int | Fraction) or not kind:
        return document
    return (time if kind == "time" else amount)(Fraction(document))


def _kind(key: str, value: object, above: str, path: tuple[str, ...]) -> str:
    """The kind of the numbers under a key, times or amounts; None where they are neither."""
    if key in _NEITHER or (path and path[0] in ("pipelines", "chains", "model", "hardware")):
        return ""
    if path and path[-1] in _OF_AMOUNTS:
        return "amount"
    single = not isinstance(value, Mapping)
    if key == "layers":
        return "" if path else above
    if key in _AMOUNTS or (key == "memory" and single) or (key == "keeps" and "memory" in path):
        return "amount"
    if key in _TIMES or (key in _LAYER_TIMES and single):
        return "time"
    return "" if key == "keeps" else above


def spelled(document: Any, numbers: str, random: Random) -> tuple[Any, Any]:
    """The document as a file writes it, in this notation, and the plain one with the numbers that it then means."""
    if numbers == "decimals":
        plain = with_numbers(document, lambda x: x / 10, lambda x: x / 4)
        return with_numbers(plain, _decimal, _decimal), plain
    if numbers == "fractions":
        plain = with_numbers(document, lambda x: x / 3, lambda x: x / 7)
        return with_numbers(plain, _ratio, _ratio), plain
    if numbers == "units":
        with_units = dict(document) | {
            "time_unit": "ms",
            "memory": dict(document.get("memory") or {}) | {"unit": "GiB"},
        }
        return with_numbers(
            with_units, lambda x: f"{_decimal(x * 1000)} us", lambda x: f"{_decimal(x * 1024)} MiB"
        ), document
    if numbers == "17 digits":
        noise = 1 + 0.05 * random.gauss(0, 1)

        def measured(x: Fraction) -> Fraction:
            return x if not x else Fraction(repr(float(x) * noise * (1 + 0.01 * random.random())))

        plain = with_numbers(document, measured, lambda x: Fraction(repr(float(x) * noise)))
        return with_numbers(plain, _decimal, _decimal), plain
    if numbers == "large range":
        plain = with_numbers(document, lambda x: x * random.choice((Fraction(1, 1000), 1, 10**6)), lambda x: x * 10**6)
        return with_numbers(plain, _decimal, _decimal), plain
    return with_numbers(document, _plain, _plain), document


def _plain(x: Fraction) -> Any:
    return int(x) if x.denominator == 1 else _decimal(x) if 10**12 % x.denominator == 0 else _ratio(x)


def _ratio(x: Fraction) -> Any:
    return int(x) if x.denominator == 1 else f"{x.numerator}/{x.denominator}" if x > 0 else _decimal(x)


def _decimal(x: Fraction) -> Any:
    return int(x) if x.denominator == 1 else Decimal(x.numerator) / Decimal(x.denominator)
