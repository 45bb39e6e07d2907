"""Tiny random plan problems that look like models: embedding, layers, MTP, head, several modes and placements."""

from __future__ import annotations

from random import Random
from typing import Any

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.plan_problem import PlanProblem

_MODES = ("full", "selective", "communication")


def varied_plan(random: Random) -> PlanProblem:
    """Return a plan problem; every placement of two devices is allowed by chance, and every rule for recomputation."""
    split = random.random() < 0.3
    devices = 2 if split else random.choice((2, 2, 3))
    free = devices == 2 and random.random() < 0.5
    moe = _layer(random, "moe", split)
    entries = [_layer(random, "dense", split)] if random.random() < 0.4 else []
    entries.append(moe | {"count": random.randint(1, 3)})
    if random.random() < 0.3:
        entries.insert(0, _layer(random, "embedding", split))
    if random.random() < 0.4:
        entries.append(_layer(random, "mtp", split) | {"count": random.choice((1, 1, 2))})
    if random.random() < 0.7:
        tied = random.random() < 0.4
        entries.append(_layer(random, "head", split) | ({"with_previous": True} if tied else {}))
    missing = devices - _stages(entries)
    entries[next(at for at, entry in enumerate(entries) if entry["name"] == "moe")]["count"] += max(0, missing)
    document: dict[str, Any] = {
        "devices": devices,
        "microbatches": 2,
        "layers": entries,
        "placement": "free" if free else "linear",
        "chunks": [1, 2] if free else 1,
        "objective": random.choice(("makespan", "makespan", "span")),
        "decide": {
            "recompute": random.choice(("free", "free", "free", "free", "never", "always")),
            "recompute_layers": random.choice(("any", "any", "first", "same", "all")),
        },
        "transfer": random.choice((0, 0, 1)),
    }
    if random.random() < 0.2:
        document["stage_overhead"] = {"forward": random.randint(0, 2), "backward": random.randint(0, 2)}
    if random.random() < 0.85:
        document["memory"] = {"capacity": random.randint(3, 12)}
    return plan_problem_from(document)


def _stages(entries: list[dict[str, Any]]) -> int:
    return sum(entry.get("count", 1) for entry in entries if not entry.get("with_previous"))


def costs_of_layer(random: Random, name: str, split: bool) -> dict[str, Any]:
    """Return the keys of a layer entry without recomputation; with `split` it has a W, and perhaps another BW."""
    layer: dict[str, Any] = {"name": name, "forward": random.randint(0, 4), "backward": random.randint(1, 6)}
    if split:
        layer["weight"] = random.randint(0, 3)
        if random.random() < 0.3:
            layer["fused"] = random.randint(1, 8)
    layer["memory"], layer["activation"] = random.randint(0, 2), random.randint(0, 3)
    if split and layer["activation"] and random.random() < 0.3:
        layer["freed_by_backward"] = random.randint(0, layer["activation"])
    return layer


def _layer(random: Random, name: str, split: bool) -> dict[str, Any]:
    layer = costs_of_layer(random, name, split)
    names = [mode for mode in _MODES if random.random() < (0.6, 0.35, 0.1)[_MODES.index(mode)]]
    if names and (name not in ("embedding", "head") or random.random() < 0.2):
        modes = [{"name": mode, "time": random.randint(0, 3), "keeps": random.choice((0, 0.5, 0.25))} for mode in names]
        layer["recompute"] = modes
    return layer
