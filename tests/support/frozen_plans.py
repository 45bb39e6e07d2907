"""Tiny plan files with frozen layers, and for each partition the problem file that docs/plans.md prescribes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

Document = dict[str, Any]


def frozen_plan(random: Random) -> Document:
    """Return a plan file of two or three devices with frozen layers: first, between, after those that train, or all."""
    devices = random.choice((2, 2, 3))
    chunks = 2 if devices == 2 and random.random() < 0.3 else 1
    split = random.random() < 0.4
    count = random.randint(devices * chunks, devices * chunks + 1) if devices * chunks > 2 else random.randint(2, 4)
    frozen = random.choice((
        range(random.randint(1, count)),
        range(random.randint(1, count)),
        (*range(random.randint(1, count - 1)), count - 1),
        [n for n in range(count) if random.random() < 0.5],
        range(count),
    ))  # fmt: skip
    once = devices * chunks == 2 and random.random() < 0.25
    layers = [_layer(random, f"l{n}", split, once, n in frozen) for n in range(count)]
    document: Document = {
        "devices": devices,
        "microbatches": 2 if devices * chunks > 2 else random.choice((2, 2, 3)),
        "layers": layers,
        "placement": random.choice(("interleaved", "wave")) if chunks == 2 else "linear",
        "chunks": chunks,
        "transfer": _transfer(random, devices),
        "decide": {"recompute": random.choice(("always", "never", "never"))},
    }
    if once:
        document |= {"objective": "iteration", "parameters": {"reduce": {}, "step": {}}}
    if random.random() < 0.3:
        document["stage_overhead"] = {"forward": random.randint(1, 2)}
    if random.random() < 0.6:
        document["memory"] = {"capacity": random.randint(4, 12)}
    return document


def _layer(random: Random, name: str, split: bool, once: bool, frozen: bool) -> Document:
    layer: Document = {"name": name, "forward": random.randint(0, 3), "backward": random.randint(0, 4)}
    layer |= {"memory": random.randint(0, 1), "activation": 2 * random.randint(0, 2)}
    if split:
        layer["weight"] = random.randint(0, 3)
        layer["freed_by_backward"] = random.randint(0, layer["activation"])
    if once:
        layer |= {"reduce": random.randint(0, 2), "step": random.randint(0, 2)}
    if random.random() < 0.3:
        layer["recompute"] = [{"name": "full", "time": random.randint(0, 2), "keeps": 0.5}]
    return layer | ({"frozen": True} if frozen else {})


def _transfer(random: Random, devices: int) -> Any:
    if devices == 2 and random.random() < 0.4:
        return [[0, random.randint(0, 2)], [random.randint(0, 3), 0]]
    return random.choice((0, 1, 2))


def problems(plan: Mapping[str, Any]) -> Iterator[Document]:
    """Yield the problem file of every partition of a plan file's layers into its stages."""
    layers, stages = plan["layers"], plan["devices"] * plan["chunks"]
    before = next((n for n, layer in enumerate(layers) if not layer.get("frozen")), len(layers))
    costs = [_costs(layer, n < before, plan["decide"]["recompute"] == "always") for n, layer in enumerate(layers)]
    for cuts in combinations(range(1, len(layers)), stages - 1):
        ends = [*zip((0, *cuts), (*cuts, len(layers)), strict=True)]
        yield _problem(plan, [costs[a:b] for a, b in ends], sum(b <= before for _, b in ends))


def _costs(layer: Mapping[str, Any], before: bool, recomputed: bool) -> Document:
    """Return the costs of a layer: forwards alone if it is `before` all that train; without W if frozen elsewhere.

    A frozen layer's B frees all of its activation. `recomputed` applies the layer's only recomputation mode.
    """
    own = {
        key: layer.get(key, 0) for key in ("forward", "backward", "weight", "memory", "activation", "reduce", "step")
    }
    own["freed"] = layer.get("freed_by_backward", 0)
    if before:
        return own | dict.fromkeys(("backward", "weight", "activation", "freed", "reduce", "step"), 0)
    if layer.get("frozen"):
        own |= {"weight": 0, "reduce": 0, "step": 0}
        own["freed"] = own["activation"] if "weight" in layer else 0
    if recomputed and "recompute" in layer:
        (mode,) = layer["recompute"]
        own["backward"] += mode["time"]
        # One that is recomputed gives back what it keeps, in the shares of the whole.
        own |= {key: own[key] * mode["keeps"] for key in ("activation", "freed")}
    return own


def _problem(plan: Mapping[str, Any], stages: Sequence[Sequence[Document]], frozen: int) -> Document:
    def summed(key: str) -> list[Any]:
        return [sum(layer[key] for layer in own) for own in stages]

    more = plan.get("stage_overhead", {}).get("forward", 0)
    times = {"forward": [one + more for one in summed("forward")], "backward": summed("backward")}
    times |= {"transfer": plan["transfer"]}
    memory: Document = {"activation": summed("activation")}
    if "weight" in plan["layers"][0]:
        times["weight"], memory["freed_by_backward"] = summed("weight"), summed("freed")
    if "memory" in plan:
        # A list of as many values as there are devices would be theirs.
        of_stages = summed("memory")
        where = [stage % plan["devices"] for stage in range(len(of_stages))]
        if plan["placement"] == "wave":
            where = [min(at, 2 * plan["devices"] - 1 - at) for at in range(len(of_stages))]
        memory["static"] = [
            sum(each for each, at in zip(of_stages, where, strict=True) if at == d) for d in range(plan["devices"])
        ]
        memory["capacity"] = plan["memory"]["capacity"]
    found = {key: plan[key] for key in ("devices", "microbatches", "placement", "chunks")}
    found |= {"times": times, "memory": memory, "frozen": frozen, "objective": plan.get("objective", "makespan")}
    if "parameters" in plan:
        found["parameters"] = {key: {"time": summed(key)} for key in ("reduce", "step")}
    return found
