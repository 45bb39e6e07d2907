"""Bounds over partitions with an encoder or a vocabulary on all devices: never above a plan, and where they meet it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

import pytest

from formulations.partition.bound_rows import mean_load
from pipesched.checking.plan_check import mean_load as mean_load_checked
from pipesched.files.plan_file import plan_problem_from, read_plan
from pipesched.layers.partition import Partition
from pipesched.layers.plan_problem import PlanProblem
from pipesched.problem.feasibility import why_infeasible
from solver.planning.budget import Budget
from solver.planning.partitions.master import Master
from solver.solve import solve
from tests.support.counted import counted

LIMITS = counted(0.3)
EXAMPLE = Path(__file__).parents[2] / "examples" / "plans" / "vision-encoder.yaml"


def least(plan: PlanProblem) -> Fraction:
    """The bound over all partitions of the only placement, in the file's unit."""
    bound = Master(plan, plan.choices[0]).cheapest(Budget(counted(2), Event()), 2).bound
    assert bound is not None, "there are plans"
    return bound * plan.tick


def drawn(random: Random, encoder: bool) -> dict[str, Any]:
    """A tiny plan file with an encoder in one of its places, or an embedding and a head on all devices.

    Half of them gather, reduce or step.
    """
    splits, once = random.random() < 0.6, [key for key in ("gather", "reduce", "step") if random.random() < 0.4]

    def costs() -> dict[str, Any]:
        own = {"forward": random.randint(0, 4), "backward": random.randint(1, 5), "activation": random.choice((0, 1))}
        own |= {key: random.randint(0, 6) for key in once}
        return own | ({"weight": random.randint(0, 3)} if splits else {})

    devices = random.randint(2, 3) if encoder else 2
    layers = [{"name": "layer", "count": random.randint(devices, devices + 1), **costs()}]
    places = ("first-stage", "own-device", "in-the-bubbles", "replicated")
    if encoder:
        given = {"name": "vision", "placement": random.choice(places), "count": random.randint(1, 3), "serves": 1}
        more: dict[str, Any] = {"encoder": given | costs() | {"memory": 1}}
    else:
        layers = [{"name": "embedding", **costs()}, *layers, {"name": "head", "memory": 1, **costs()}]
        more = {"vocabulary": "shared"}
    if once:
        more |= {
            "objective": "iteration",
            "parameters": {key: {} for key in once},
            "overlap_next": random.random() < 0.4,
        }
    return {"objective": random.choice(("makespan", "makespan", "span"))} | more | {
        "devices": devices, "microbatches": devices, "layers": layers, "chunks": 1, "placement": "linear",
        "transfer": random.choice((0, 1)),
        "memory": {"capacity": random.choice((6, 20))}, "stage_overhead": {"forward": 1, "backward": 0},
    }  # fmt: skip


def values(plan: PlanProblem) -> Iterator[Fraction]:
    """What a search finds of every partition."""
    (run,) = plan.model.layers
    stages = plan.cluster.devices
    for counts in product(range(1, run.count + 1), repeat=stages):
        problem = plan.problem(plan.choices[0], Partition(counts)) if sum(counts) == run.count else None
        if problem is not None and why_infeasible(problem) is None:
            found = solve(problem, LIMITS)
            if found.value_ticks is not None:
                yield found.value_ticks * problem.tick


@pytest.mark.parametrize("encoder", (True, False))
def test_no_bound_is_above_a_plan(encoder: bool) -> None:
    random, tried = Random(7), 0
    while tried < 1:
        plan = plan_problem_from(drawn(random, encoder))
        choice = plan.choices[0]
        assert mean_load(plan, choice) * plan.tick == mean_load_checked(plan, choice)
        if plan.cluster.devices > plan.model.most_stages:
            continue
        best = min(values(plan), default=None)
        if best is not None:
            tried += 1
            assert mean_load_checked(plan, choice) <= least(plan) <= best


def test_the_bound_meets_the_optimum_of_even_partitions() -> None:
    """Of those of examples/modules, but for the encoder on the first device: 414."""
    free = read_plan(EXAMPLE)
    bounds = {
        name: least(replace(one, counts=(24 // one.cluster.devices,) * one.cluster.devices, even=False))
        for name, one in free.variants.items()
    }
    assert bounds == {
        "encoder first-stage": 384, "encoder own-device": 442, "encoder in-the-bubbles": 380, "encoder replicated": 373
    }  # fmt: skip
