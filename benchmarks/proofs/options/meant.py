"""The documents that options mean, written by hand: other capacities, objectives, and what a runtime leaves out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

Document = dict[str, Any]


def with_objective(document: Document, name: str) -> Document:
    """Return the document with another objective."""
    return document | {"objective": name}


def with_capacities(document: Document, capacities: Sequence[Fraction | None] | None) -> Document:
    """Return the document with these capacities of its devices, or with none."""
    found = copy.deepcopy(document)
    memory = found.setdefault("memory", {})
    memory.pop("capacity", None)
    if capacities is not None:
        memory["capacity"] = list(capacities)
    return found


def without_transfers(document: Document) -> Document | None:
    """Return the document with transfers that take no time; None where modules or blocking transfers have some."""
    transfer = document.get("times", {}).get("transfer")
    if transfer is None or "modules" in document or "batch" in document or isinstance(transfer, dict):
        return None
    found = copy.deepcopy(document)
    found["times"].pop("transfer")
    return found


def _full(times: Document, stages: int) -> list[Any]:
    """Return the time of each stage's full backward."""

    def row(key: str) -> list[Any]:
        value = times[key]
        return value if isinstance(value, list) else [value] * stages

    if "fused" in times:
        return row("fused")
    return [b + w for b, w in zip(row("backward"), row("weight"), strict=True)]


def for_runtime(document: Document, name: str, stages: int) -> Document | None:
    """Return the document that `solve --for NAME` solves; None where no document says it."""
    found, times = copy.deepcopy(document), dict(document.get("times", {}))
    if {"tasks", "chains", "modules", "batch", "sequence_chunks", "pipelines"} & document.keys():
        return None
    if document.get("placement") == "bidirectional":
        return None
    memory, split = found.get("memory", {}), "weight" in times
    if name in ("deepspeed", "megatron-order", "megatron-hybrid-order"):
        times.pop("overlapped", None)
    elif "overlapped" in times and split and name != "torch":
        return None  # a block has the full backward as its own
    if name == "deepspeed" and split:
        times["backward"] = _full(times, stages)
        times.pop("weight")
        times.pop("fused", None)
        if "workspace" in memory or "until_end" in memory:
            return None
        memory.pop("freed_by_backward", None)
    if name in ("jaxpp", "torchtitan") and split:
        if {"workspace", "until_end"} & memory.keys():
            return None
        at, whole = 0 if name == "jaxpp" else stages - 1, _full(times, stages)
        for key in ("backward", "weight"):
            value = times[key]
            times[key] = list(value) if isinstance(value, list) else [value] * stages
        times["backward"][at], times["weight"][at] = whole[at], 0
        times["fused"] = whole
    found["times"] = times
    return found
