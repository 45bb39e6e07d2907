"""Keys of problem, plan and state files that may have values with units, and the kind of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipesched.files.features.catalogue import FEATURES
from pipesched.files.fields.kind import QuantityKind
from pipesched.files.plans.features.catalogue import units_of_keys
from pipesched.problem.problem import Problem


class Form(NamedTuple):
    """The keys of one kind of file (problem, plan or state) whose values may have units, by path without list indices.

    A path stands for all keys under it. `activations` is the path of the sections in which shares (`PART`,
    `SHARE_OF_MEMORY`) refer to the activation. `time_unit` and `memory_unit` return the file's own units.
    """

    kinds: Mapping[str, QuantityKind]
    activations: str
    time_unit: Callable[[Mapping[str, Any]], str]
    memory_unit: Callable[[Mapping[str, Any]], str]


def _text(value: object, default: str) -> str:
    return value if isinstance(value, str) else default


def _section(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, dict) else {}


PROBLEM = Form(
    {
        "times": QuantityKind.TIME,
        **{f"tasks.{key}.time": QuantityKind.TIME for key in ("forward", "backward", "weight")},
        "memory.capacity": QuantityKind.MEMORY,
        "memory.static": QuantityKind.MEMORY,
        "memory.activation": QuantityKind.MEMORY,
        "memory.freed_by_backward": QuantityKind.PART,
        **{key: kind for feature in FEATURES for key, kind in feature.with_units.items()},
    },
    "memory.activation",
    lambda document: _text(document.get("time_unit"), ""),
    lambda document: _text(_section(document, "memory").get("unit"), "activations"),
)
PLAN = Form(
    {
        **{f"layers.{key}": QuantityKind.TIME for key in ("forward", "backward", "weight", "fused", "recompute.time")},
        "transfer": QuantityKind.TIME,
        "layers.memory": QuantityKind.MEMORY,
        "layers.activation": QuantityKind.MEMORY,
        "memory.capacity": QuantityKind.MEMORY,
        "hardware.memory": QuantityKind.MEMORY,
        "hardware.reserved": QuantityKind.MEMORY,
        "layers.freed_by_backward": QuantityKind.PART,
        "layers.recompute.keeps": QuantityKind.SHARE_OF_MEMORY,
        "hardware.hidden_share": QuantityKind.SHARE,
        "hardware.data_hidden_share": QuantityKind.SHARE,
        "hardware.gather_hidden_share": QuantityKind.SHARE,
        "hardware.dense_launch": QuantityKind.TIME,
        "hardware.moe_launch": QuantityKind.TIME,
        "hardware.moe_wait": QuantityKind.TIME,
        **units_of_keys(),
    },
    "layers.activation",
    lambda document: _text(document.get("time_unit"), "ms" if "model" in document else ""),
    lambda document: _text(_section(document, "memory").get("unit"), "GiB"),
)


def state_form(problem: Problem) -> Form:
    """Return the keys with units of a state file; its unit of time is that of the problem."""
    times = dict.fromkeys(("now", "passes.start", "passes.end"), QuantityKind.TIME)
    return Form(times, "", lambda _: problem.time_unit, lambda _: "")
