"""Tiny problems with modules that feed a trunk, at random: on the trunk's devices or others, replicated, several of
them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from pipesched.problem.problem import Problem
from tests.support.makers import problem

# Devices, the device of each stage of the trunk, its micro-batches, and the placements of modules to draw from.
_SHAPES: tuple[tuple[int, list[int], int, tuple[Any, ...]], ...] = (
    (1, [0], 2, ([0],)),
    (1, [0, 0], 1, ([0], [0, 0])),
    (2, [0], 4, ([1], [[1]])),
    (2, [0, 1], 2, ([0], [1], [0, 1], [1, 0], "replicated", [[1], [0]])),
    (2, [0, 1], 1, ([0, 1], [1, 0])),
    (3, [0, 1], 2, ([2], [2, 0])),
    (3, [2, 0], 2, ([1], [[1], [2]])),
    (3, [0], 2, ([[1], [2]],)),
)
# Those with few passes on each stream, beside which others may be tried in every order.
_FEW: tuple[tuple[int, list[int], int, tuple[Any, ...]], ...] = (
    (1, [0], 1, ([0],)),
    (2, [0], 2, ([1],)),
    (2, [0, 1], 1, ([0], [1], [1, 0])),
    (2, [0], 2, ([[0], [1]],)),
)


def tiny_modules(random: Random, few: bool = False) -> Problem:
    """Return a problem with random times, activations, transfers or links, and memory from too little to ample.

    With `few` it has so few passes that other features can be added and all orders still be tried.
    """
    devices, trunk, microbatches, places = random.choice(_FEW if few else _SHAPES)
    split, longest = random.random() < 0.2 and microbatches * len(trunk) <= 2, random.choice((2, 5))

    def times(stages: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            key: [random.randint(0, longest) for _ in range(stages)] for key in ("forward", "backward")
        }
        if split:
            found |= {key: [random.randint(0, 3) for _ in range(stages)] for key in ("weight", "fused")}
        return found

    named: dict[str, Any] = {}
    for name in ("vision", "audio")[: 2 if random.random() < 0.25 and microbatches < 4 and not split else 1]:
        place = random.choice(places)
        one = devices if place == "replicated" else len(place)
        copies = place == "replicated" or isinstance(place[0], list)
        serves = [n for n in (1, 2, 4) if microbatches % n == 0 and (not copies or one <= microbatches // n)]
        stages = 1 if copies else len(place)
        named[name] = {
            "placement": place,
            "feeds": random.choice((0, len(trunk) - 1, list(range(len(trunk))))),
            "serves": random.choice(serves),
            "times": times(stages) | random.choice(({}, {"transfer": random.randint(0, 2)})),
            "memory": {"activation": random.randint(1, 2), "static": random.choice((0, 0, 1))},
        }
    idle = set(range(devices)) - set(trunk)
    for module in named.values():
        rows = module["placement"] if module["placement"] != "replicated" else list(range(devices))
        idle -= {device for row in rows for device in (row if isinstance(row, list) else [row])}
    if idle:
        return tiny_modules(random, few)
    memory: dict[str, object] = {"activation": [random.randint(1, 2) for _ in trunk]}
    if random.random() < 0.7:
        memory["capacity"] = [random.randint(3, 3 + 2 * microbatches) for _ in range(devices)]
    links = [[0 if a == b else random.randint(0, 3) for b in range(devices)] for a in range(devices)]
    if devices < 3 and len(trunk) * microbatches < 4 and random.random() < 0.4:
        named |= _shared(random, len(trunk), microbatches, times)
    return problem(
        devices,
        microbatches,
        placement=trunk,
        times=times(len(trunk)) | random.choice(({}, {"transfer": 1}, {"transfer": links})),
        memory=memory,
        modules=named,
        objective=random.choice(("makespan", "makespan", "span")),
    )


def _shared(random: Random, stages: int, microbatches: int, times: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
    """Return a module shared by all devices: a head after the last stage, or an embedding before the first."""
    common = {
        "placement": "shared",
        "times": {key: value[0] for key, value in times(1).items()} | {"transfer": random.randint(0, 2)},
        "memory": {"activation": random.randint(0, 1)},
    }
    if random.random() < 0.3:
        return {"vision": common | {"feeds": 0, "serves": random.choice((1, microbatches))}}
    return {"vision": common | {"follows": stages - 1, "barriers": random.choice((1, 2))}}
