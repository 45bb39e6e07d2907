"""Exact optima of tiny plan problems by trying every partition, recomputation and order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from random import Random
from typing import Any

from pipesched.files.plan_file import plan_problem_from
from pipesched.layers.layer import LayerType
from pipesched.layers.partition import Partition, Recomputed, mistakes
from pipesched.layers.pieces import Lengths, SequenceCut
from pipesched.layers.plan_problem import Choice, Decide, PlanProblem
from pipesched.layers.recompute_rule import why_not_expressible
from tests.support.exhaustive.optimum import least
from tests.support.varied_plans import costs_of_layer


def partitions(plan: PlanProblem, choice: Choice) -> Iterator[Partition]:
    """Yield all partitions of the model on a placement, each with all recomputations of its layers that the plan
    allows."""
    stages, layers = len(choice.on(plan.cluster.devices).chains[0]), len(plan.model.sequence)
    empty = plan.model.empty_stages
    every = combinations_with_replacement(range(layers + 1), stages - 1) if empty else None
    for cuts in every or combinations(range(1, layers), stages - 1):
        counts = tuple(b - a for a, b in zip((0, *cuts), (*cuts, layers), strict=True))
        if mistakes(plan.model, Partition(counts)) or (plan.counts is not None and counts != plan.counts):
            continue
        layers_of_stages = Partition(counts).layers_of(plan.model)
        for recompute in product(
            *(list(_recomputations(plan, Counter(layer.name for layer in own))) for own in layers_of_stages)
        ):
            found = Partition(counts, recompute if any(recompute) else ())
            if why_not_expressible(plan.model, found, plan.recompute_rule) is None:
                yield found


def _recomputations(plan: PlanProblem, layers_by_name: Counter[str]) -> Iterator[tuple[Recomputed, ...]]:
    kinds = [kind for kind in plan.model.kinds if kind.recompute and layers_by_name[kind.name]]
    if plan.recompute is Decide.NEVER:
        kinds = []
    if plan.recompute is Decide.ALWAYS:
        yield tuple(Recomputed(kind.name, kind.recompute[0].name, layers_by_name[kind.name]) for kind in kinds)
        return
    options = [
        [
            numbers
            for numbers in product(range(layers_by_name[kind.name] + 1), repeat=len(kind.recompute))
            if sum(numbers) <= layers_by_name[kind.name]
        ]
        for kind in kinds
    ]
    for chosen in product(*options):
        yield tuple(
            Recomputed(kind.name, mode.name, number)
            for kind, numbers in zip(kinds, chosen, strict=True)
            for mode, number in zip(kind.recompute, numbers, strict=True)
            if number
        )


def best_value(plan: PlanProblem) -> dict[Choice, Fraction | None]:
    """Return the least value of each placement in the file's unit; None where no plan fits."""
    found: dict[Choice, Fraction | None] = {}
    for choice in plan.choices:
        values = []
        if plan.model.empty_stages or len(choice.on(plan.cluster.devices).chains[0]) <= len(plan.model.sequence):
            for partition in partitions(plan, choice):
                best = least(plan.problem(choice, partition), plan.objective)
                if best is not None:
                    values.append(best * plan.tick)
        found[choice] = min(values, default=None)
    return found


def tiny_plan(random: Random) -> PlanProblem:
    """Return a plan problem of two or three devices and micro-batches, three or four layers, each key of the file by
    chance."""
    devices = random.choice((2, 2, 3))
    split = random.random() < 0.4 and devices == 2
    chunks = random.choice((1, 1, 2)) if devices == 2 and not split else 1
    kinds = []
    for n in range(random.choice((2, 3))):
        kind = costs_of_layer(random, f"k{n}", split)
        if random.random() < 0.4:
            keeps = random.choice((0, 0.5))
            kind["recompute"] = [{"name": "full", "time": random.randint(0, 3), "keeps": keeps}]
        kinds.append(kind)
    stages = devices * chunks
    layers = [dict(random.choice(kinds)) for _ in range(max(stages, random.choice((3, 4))))]
    if len(layers) > stages and random.random() < 0.3:
        layers[-1]["with_previous"] = True
    document: dict[str, Any] = {
        "devices": devices,
        "microbatches": 2 if chunks == 2 or split else random.choice((2, 3)),
        "layers": layers,
        "placement": random.choice(("interleaved", "wave")) if chunks == 2 else "linear",
        "chunks": chunks,
        "objective": random.choice(("makespan", "makespan", "span")),
        "decide": {"recompute": random.choice(("free", "free", "free", "never", "always"))},
        "transfer": random.choice((0, 0, 1)),
    }
    if random.random() < 0.25:
        document["stage_overhead"] = {"forward": random.randint(0, 2), "backward": random.randint(0, 2)}
    if random.random() < 0.7:
        document["memory"] = {"capacity": random.randint(4, 12)}
    return plan_problem_from(document)


def in_pieces(plan: PlanProblem, random: Random) -> PlanProblem:
    """Return the plan problem with sequences that may be cut in two, of layers with attention.

    It has fewer micro-batches, so that all orders can be tried.
    """

    def layer(one: LayerType) -> LayerType:
        whole, split = one.backward + (one.weight or 0), min(one.backward, one.full_backward)
        share = random.choice((Fraction(0), Fraction(1, 2), Fraction(1)))
        later = Fraction(random.choice((0, 0, 1)), 2) * (one.activation - max(Fraction(0), one.freed_by_backward))
        backward = min(share, split / whole if whole else Fraction(0))
        return replace(one, attention=share, attention_backward=backward, kept_for_later=later)

    kinds = {kind.name: layer(kind) for kind in plan.model.kinds}
    layers = tuple(
        replace(kinds[one.name], count=one.count, with_previous=one.with_previous) for one in plan.model.layers
    )
    cuttings = random.choice(
        (((1, Lengths.EQUAL), (2, Lengths.EQUAL)), ((2, Lengths.EQUAL_TIME),), ((2, Lengths.EQUAL),))
    )
    choices = tuple(Choice(*choice[:2], SequenceCut(*cutting)) for choice in plan.choices for cutting in cuttings)
    model, few = replace(plan.model, layers=layers), 1 if plan.model.splittable or choices[0].chunks > 1 else 2
    # Halves and quarters of whole numbers; equal times are rounded.
    tick, step = plan.tick / 8, plan.resolution / 4
    return replace(plan, model=model, choices=choices, microbatches=few, tick=tick, resolution=step)


def with_parameters(random: Random) -> PlanProblem:
    """Return a plan problem of two or three layers on one or two devices that reduce, step and gather.

    It has so few passes that all orders can be tried.
    """
    devices, chunks, microbatches = random.choice(((1, 1, 2), (2, 1, 1), (2, 1, 1), (1, 2, 1), (2, 1, 2)))
    gathers = devices * microbatches < 4 and random.random() < 0.6

    def added(key: str) -> dict[str, int]:
        return {key: random.randint(1, 2)} if random.random() < 0.3 else {}

    buckets = {"buckets": random.choice((1, 1, 2, 3))} if devices * microbatches < 4 else {}
    parameters: dict[str, Any] = {"reduce": added("time") | buckets} if random.random() < 0.7 else {}
    parameters |= {"step": added("time")} if random.random() < 0.7 else {}
    if gathers or not parameters:
        rule = random.choice(({"keep": "always"}, {"most": devices * chunks + 1}, {"most": devices * chunks + 1}))
        window = {"keep": {"window": 1}} if chunks > 1 and random.random() < 0.3 else {}
        parameters["gather"] = {"on": random.choice(("dp", "dp", "compute"))} | added("memory") | (window or rule)
    costs = {"forward": (0, 3), "backward": (1, 4), "memory": (0, 2), "activation": (0, 2)}
    costs |= {"gather": (0, 2), "gathered": (0, 2)} if "gather" in parameters else {}
    costs |= {key: (0, 4) for key in ("reduce", "step") if key in parameters}
    count = random.choice((2, 3))
    layers = [{"name": f"l{n}"} | {key: random.randint(*ends) for key, ends in costs.items()} for n in range(count)]
    document: dict[str, Any] = {
        "devices": devices,
        "microbatches": microbatches,
        "layers": layers,
        "placement": "interleaved" if chunks > 1 else "linear",
        "chunks": chunks,
        "parameters": parameters,
        "objective": "iteration",
        "overlap_next": random.random() < 0.3,
        "transfer": random.choice((0, 1)),
    }
    if random.random() < 0.7:
        document["memory"] = {"capacity": random.randint(4, 12)}
    if devices == 2 and random.random() < 0.3:
        capacity = document.pop("memory", {}).get("capacity", 20)
        document["cluster"] = [
            {"devices": 1, "speed": speed, "memory": capacity} for speed in random.sample((1, 0.5), 2)
        ]
        del document["devices"]
    return plan_problem_from(document)
